#include "comm/nccl/api.h"

#include <fmt/core.h>

#include "core/error.h"

namespace lockstep::comm::nccl {
namespace {

constexpr size_t kOldest = NCCL_VERSION(2, 18, 0);
constexpr const char* kWithout = "let gradients travel through the host";

size_t version_of(const Api& api) {
  int version = 0;
  api.get_version(&version);
  return static_cast<size_t>(version);
}

}  // namespace

Api::Api(const std::string& soname) : library_("NCCL 2", soname, kWithout, Remedy::kHostExchange) {
  if (version_of(*this) >= kOldest) return;
  throw EnvironmentError(
      "NCCL is too old",
      fmt::format("it is {}, the exchange of gradients needs {} or newer",
                  version(),
                  cuda::version_text(kOldest)),
      fmt::format("pip install nvidia-nccl-cu{}, or the package of NVIDIA; or {}",
                  CUDART_VERSION / 1000,
                  kWithout),
      Remedy::kHostExchange);
}

std::string Api::version() const {
  return cuda::version_text(version_of(*this));
}

const Api& api() {
  static const Api opened;
  return opened;
}

}  // namespace lockstep::comm::nccl
