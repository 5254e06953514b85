#include "comm/connect.h"

#include <utility>

#include <fmt/core.h>

#include "comm/messages/mpi_communicator.h"
#include "comm/shared/process_ranks.h"
#include "comm/single.h"
#include "core/error.h"

namespace lockstep::comm {

Connection connect(const Launch& launch, const ConnectOptions& options) {
  if (!launch.needs_mpi()) return {std::make_unique<SingleCommunicator>(), "none", {}};
  if (launch.launcher == Launcher::kTorchrun) {
    throw EnvironmentError(fmt::format("torchrun started {} ranks that cannot meet", launch.size),
                           "the ranks find each other through MPI, which torchrun does not start",
                           fmt::format("mpirun -np {} PROGRAM ARGUMENTS", launch.size));
  }
  std::unique_ptr<Communicator> mpi =
      std::make_unique<MpiCommunicator>(std::make_unique<MpiSession>(launch), options.stall_abort);
  if (options.transport == Transport::kMpi) return {std::move(mpi), "mpi", {}};

  SharedRanks shared = share_memory(mpi, launch, options.stall_abort);
  if (shared.ranks) return {std::move(shared.ranks), "shm", {}};
  if (options.transport == Transport::kShm) {
    throw EnvironmentError("the ranks cannot share memory",
                           shared.problem,
                           "let them talk through MPI, which works between hosts too",
                           Remedy::kMpi);
  }
  return {std::move(mpi), "mpi", shared.problem};
}

}  // namespace lockstep::comm
