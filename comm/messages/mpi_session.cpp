#include "comm/messages/mpi_session.h"

#include <cstdlib>
#include <exception>

#include <fmt/core.h>
#include <mpi.h>

#include "core/error.h"

namespace lockstep::comm {
namespace {

void check_setup(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  throw EnvironmentError(fmt::format("{} failed", call), mpi_error_text(status));
}

void check_world(const Launch& launch, int size) {
  if (launch.size == 0 || launch.size == size) return;
  throw EnvironmentError(
      fmt::format("the launcher started {} ranks, but MPI connects {}", launch.size, size),
      fmt::format("this program uses {}; the launcher belongs to another MPI", mpi_library()),
      "start it with the mpirun of the MPI that it was built with; under Slurm with srun "
      "--mpi=pmix");
}

}  // namespace

MpiSession::MpiSession(const Launch& launch)
    : shares_cores_(comm::shares_cores(launch)), exceptions_(std::uncaught_exceptions()) {
  // Open MPI polls at full speed unless told otherwise: 60 times slower when ranks share cores.
  if (shares_cores_) ::setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  int provided = MPI_THREAD_SINGLE;
  check_setup(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
  check_setup(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
              "MPI_Comm_set_errhandler");
  check_setup(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
  check_setup(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
  check_world(launch, size_);
  if (provided < MPI_THREAD_FUNNELED) {
    throw EnvironmentError(
        "this MPI allows no threads", mpi_library(), "use an MPI built with thread support");
  }
}

MpiSession::~MpiSession() {
  if (!unwinding()) MPI_Finalize();
}

bool MpiSession::unwinding() const {
  return std::uncaught_exceptions() > exceptions_;
}

// Its own text goes on: "Open MPI v4.1.4, package: ...".
std::string mpi_library() {
  std::string text(MPI_MAX_LIBRARY_VERSION_STRING, '\0');
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  return text.substr(0, text.find_first_of(",\n\0", 0, 3));
}

std::string mpi_error_text(int status) {
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  MPI_Error_string(status, text.data(), &length);
  text.resize(static_cast<size_t>(length));
  return text;
}

}  // namespace lockstep::comm
