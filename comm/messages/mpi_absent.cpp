// Replaces MPI in a build without it. Only ranks that meet through MPI call it.
#include "comm/messages/mpi_transport.h"
#include "core/error.h"

namespace lockstep::comm {
namespace {

[[noreturn]] void refuse() {
  throw EnvironmentError("this build has no MPI, through which this launcher's ranks meet",
                         "none was found when it was configured, or LOCKSTEP_MPI=OFF",
                         "start the ranks with torchrun or by hand, or scripts/setup.sh and cmake "
                         "--preset release -DLOCKSTEP_MPI=ON");
}

}  // namespace

struct MpiSession::World {};

MpiSession::MpiSession(const Launch&) : shares_cores_(false), exceptions_(0) {
  refuse();
}
MpiSession::~MpiSession() = default;

bool MpiSession::unwinding() const {
  refuse();
}

std::string mpi_library() {
  return {};
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
