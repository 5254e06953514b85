// What comm/messages gives of MPI, in a build without it: one rank never asks for it.
#include "comm/messages/mpi_transport.h"
#include "core/error.h"

namespace lockstep::comm {
namespace {

[[noreturn]] void refuse() {
  throw EnvironmentError("this build runs one rank",
                         "it has no MPI, through which ranks meet: none was found when it was "
                         "configured, or LOCKSTEP_MPI=OFF",
                         "one process without mpirun, or scripts/setup.sh and cmake --preset "
                         "release -DLOCKSTEP_MPI=ON");
}

}  // namespace

MpiSession::MpiSession(const Launch&) : shares_cores_(false), exceptions_(0) {
  refuse();
}
MpiSession::~MpiSession() = default;

bool MpiSession::unwinding() const {
  refuse();
}

std::unique_ptr<Round> MpiTransport::start(const Operation&,
                                           std::span<const Send>,
                                           std::span<const Receive>) {
  refuse();
}

std::unique_ptr<Round> MpiTransport::start_library_sum(const Operation&, Tensor&) {
  refuse();
}

}  // namespace lockstep::comm
