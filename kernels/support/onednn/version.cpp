#include "kernels/support/onednn/version.h"

#include <fmt/format.h>

#include "kernels/support/onednn/shim.h"

namespace lockstep::kernels {

std::string onednn_version() {
  const dnnl_version_t& version = *dnnl_version();
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

void require_onednn() {}

bool onednn_has_bf16() {
  const auto bits = [](dnnl::cpu_isa isa) { return static_cast<unsigned>(isa); };
  const unsigned wanted = bits(dnnl::cpu_isa::avx512_core_bf16);
  return (bits(onednn::effective_isa()) & wanted) == wanted;
}

}  // namespace lockstep::kernels
