// Replaces comm/nccl in a build without NCCL.
#include "comm/nccl/connect.h"
#include "core/error.h"

namespace lockstep::comm::nccl {
namespace {

[[noreturn]] void refuse() {
  throw EnvironmentError(
      "this build has no NCCL",
      "no nccl.h or no libnccl.so.2 was found when it was configured, or LOCKSTEP_NCCL=OFF",
      "install libnccl-dev, or nvidia-nccl-cu12 or -cu13 with pip, then cmake --preset release "
      "-DLOCKSTEP_NCCL=ON",
      Remedy::kHostExchange);
}

}  // namespace

std::string version() {
  refuse();
}
MakeDeviceExchange connect(Communicator&, std::chrono::milliseconds) {
  refuse();
}

}  // namespace lockstep::comm::nccl
