#include "comm/connect.h"

#include "comm/mpi_communicator.h"
#include "comm/single.h"
#include "core/error.h"

namespace lockstep::comm {

std::unique_ptr<Communicator> connect(const Launch& launch, std::chrono::milliseconds stall_abort) {
  if (!launch.needs_mpi()) return std::make_unique<SingleCommunicator>();
  if (launch.launcher == Launcher::kTorchrun) {
    throw EnvironmentError(fmt::format("torchrun started {} ranks that cannot meet", launch.size),
                           "the ranks find each other through MPI, which torchrun does not start",
                           fmt::format("mpirun -np {} PROGRAM ARGUMENTS", launch.size));
  }
  return std::make_unique<MpiCommunicator>(std::make_unique<MpiSession>(launch), stall_abort);
}

}  // namespace lockstep::comm
