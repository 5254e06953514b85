#include "data/torch_file/zip_format.h"

#include <zlib.h>

namespace lockstep::data::zip {

uint32_t crc_of(std::span<const std::byte> bytes) {
  if (bytes.empty()) return 0;
  return static_cast<uint32_t>(
      ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace lockstep::data::zip
