#include "kernels/onednn_version.h"

#include <dnnl.hpp>
#include <fmt/format.h>

namespace lockstep::kernels {

std::string onednn_version() {
  const dnnl_version_t& version = *dnnl_version();
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

}  // namespace lockstep::kernels
