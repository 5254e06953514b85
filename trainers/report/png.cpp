#include "trainers/report/png.h"

#include <cstdint>
#include <string_view>

#include <zlib.h>

#include "core/check.h"
#include "core/error.h"

namespace lockstep::trainers {
namespace {

std::string big_endian(uint32_t value) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(value >> shift & 0xFF);
  return bytes;
}

const Bytef* as_bytes(std::string_view text) {
  return reinterpret_cast<const Bytef*>(text.data());
}

std::string chunk(std::string_view type, std::string_view content) {
  const std::string checked = std::string(type) + std::string(content);
  const uLong crc = crc32(0, as_bytes(checked), static_cast<uInt>(checked.size()));
  return big_endian(static_cast<uint32_t>(content.size())) + checked +
         big_endian(static_cast<uint32_t>(crc));
}

std::string deflated(std::string_view bytes) {
  uLongf size = compressBound(bytes.size());
  std::string result(size, '\0');
  const int status = compress2(
      reinterpret_cast<Bytef*>(result.data()), &size, as_bytes(bytes), bytes.size(), Z_BEST_SPEED);
  LS_CHECK(status == Z_OK, "[png] zlib: status {}", status);
  result.resize(size);
  return result;
}

// Each row begins with the number of its filter: 0, none.
std::string rows_of(const Picture& picture) {
  const auto width = static_cast<size_t>(picture.width * picture.channels);
  std::string rows;
  for (size_t row = 0; row < static_cast<size_t>(picture.height); ++row) {
    rows += '\0';
    rows += std::string_view(picture.pixels).substr(row * width, width);
  }
  return rows;
}

}  // namespace

std::string png_of(const Picture& picture) {
  LS_CHECK((picture.channels == 1 || picture.channels == 3) &&
               std::ssize(picture.pixels) == picture.height * picture.width * picture.channels,
           "[png] got {} bytes for {} x {} pixels of {} channels",
           picture.pixels.size(),
           picture.height,
           picture.width,
           picture.channels);
  constexpr char kGray = 0, kColor = 2;
  std::string header = big_endian(static_cast<uint32_t>(picture.width)) +
                       big_endian(static_cast<uint32_t>(picture.height));
  header += '\x08';  // bits per channel
  header += picture.channels == 1 ? kGray : kColor;
  header += std::string(3, '\0');  // deflate, filters by row, no interlacing
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + chunk("IDAT", deflated(rows_of(picture))) +
         chunk("IEND", "");
}

}  // namespace lockstep::trainers
