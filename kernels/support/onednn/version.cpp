#include "kernels/support/onednn/version.h"

#include <cstdlib>
#include <string_view>

#include <fmt/format.h>
#include <oneapi/dnnl/dnnl_debug.h>

#include "kernels/support/onednn/shim.h"

namespace lockstep::kernels {
namespace {

// oneDNN's environment variables that select other code on the same processor, with both prefixes.
constexpr const char* kChoosing[] = {"DNNL_DEFAULT_FPMATH_MODE",
                                     "ONEDNN_DEFAULT_FPMATH_MODE",
                                     "DNNL_CPU_ISA_HINTS",
                                     "ONEDNN_CPU_ISA_HINTS"};

}  // namespace

std::string onednn_version() {
  const dnnl_version_t& version = *dnnl_version();
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

std::string onednn_isa() {
  const std::string_view name =
      dnnl_cpu_isa2str(static_cast<dnnl_cpu_isa_t>(onednn::effective_isa()));
  std::string text(name.substr(name.find(':') + 1));  // after "cpu_isa:", if there is such a prefix
  for (const char* variable : kChoosing) {
    const char* const value =
        std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): nobody sets any
    if (value != nullptr && *value != '\0') text += fmt::format(", {}={}", variable, value);
  }
  return text;
}

void require_onednn() {}

bool onednn_has_bf16() {
  const auto bits = [](dnnl::cpu_isa isa) { return static_cast<unsigned>(isa); };
  const unsigned wanted = bits(dnnl::cpu_isa::avx512_core_bf16);
  return (bits(onednn::effective_isa()) & wanted) == wanted;
}

}  // namespace lockstep::kernels
