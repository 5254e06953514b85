#include "comm/nccl/api.h"

#include <fmt/core.h>

#include "core/error.h"

namespace lockstep::comm::nccl {
namespace {

constexpr const char* kWithout = "let gradients travel through the host";

std::string version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

int version_of(const Api& api) {
  int version = 0;
  api.get_version(&version);
  return version;
}

}  // namespace

Api::Api(const std::string& soname) : library_("NCCL 2", soname, kWithout, Remedy::kHostExchange) {
  if (version_of(*this) >= kAbiVersion) return;
  throw EnvironmentError(
      "NCCL is too old",
      fmt::format("it is {}, the exchange of gradients needs {} or newer",
                  version_text(version_of(*this)),
                  version_text(kAbiVersion)),
      fmt::format("pip install nvidia-nccl-cu13, or the package of NVIDIA; or {}", kWithout),
      Remedy::kHostExchange);
}

std::string Api::version() const {
  return version_text(version_of(*this));
}

const Api& api() {
  static const Api& opened = *new Api;  // its threads may outlive static objects
  return opened;
}

}  // namespace lockstep::comm::nccl
