#include "data/torch_file/refuse.h"

#include <fmt/core.h>

#include "core/error.h"

namespace lockstep::data {

void refuse_torch_file(const std::string& file, const std::string& why, const std::string& hint) {
  throw CheckpointError(fmt::format("cannot read weights from {}", file), why, hint);
}

}  // namespace lockstep::data
