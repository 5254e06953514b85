// What comm/nccl gives, in a build without NCCL.
#include "comm/nccl/connect.h"
#include "core/error.h"

namespace lockstep::comm::nccl {

std::string version() {
  throw EnvironmentError(
      "this build has no NCCL",
      "no nccl.h or no libnccl.so.2 was found when it was configured, or LOCKSTEP_NCCL=OFF",
      "install libnccl-dev, or nvidia-nccl-cu13 by pip, then cmake --preset release "
      "-DLOCKSTEP_NCCL=ON; or --transport auto, shm or mpi");
}

// Nothing here would refuse them.
void check_devices_differ(Communicator& /*peers*/, std::string_view /*device*/) {}

MakeDeviceExchange connect(Communicator& /*peers*/, std::chrono::milliseconds /*deadline*/) {
  version();  // throws
  return {};
}

}  // namespace lockstep::comm::nccl
