#include "comm/messages/mpi_session.h"

#include <cstdlib>
#include <exception>

#include <fmt/core.h>
#include <mpi.h>

#include "comm/messages/mpi_world.h"
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

bool has_ended() {
  int ended = 0;
  MPI_Finalized(&ended);
  return ended != 0;
}

// MPI may be called from one thread only, and so may these. A session that ended with an error
// stays in the count, so MPI is then never ended.
struct {
  int count = 0;
  bool started_mpi = false;
} sessions;

void start_mpi(bool shares_cores) {
  if (has_ended()) {
    throw UsageError("MPI has ended",
                     "a process can start it once",
                     "one connection that lives as long as ranks are needed");
  }
  int runs = 0;
  MPI_Initialized(&runs);
  if (runs != 0) return;
  // Open MPI polls at full speed unless told otherwise: 60 times slower when ranks share cores.
  if (shares_cores) ::setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  int provided = MPI_THREAD_SINGLE;
  check_setup(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
  sessions.started_mpi = true;
  check_setup(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
              "MPI_Comm_set_errhandler");
  if (provided < MPI_THREAD_FUNNELED) {
    throw EnvironmentError(
        "this MPI allows no threads", mpi_library(), "use an MPI built with thread support");
  }
}

}  // namespace

MpiSession::MpiSession(const Launch& launch)
    : world_(std::make_unique<World>()),
      thread_(std::this_thread::get_id()),
      shares_cores_(comm::shares_cores(launch)),
      exceptions_(std::uncaught_exceptions()) {
  start_mpi(shares_cores_);
  check_setup(MPI_Comm_dup(MPI_COMM_WORLD, &world_->ranks), "MPI_Comm_dup");
  check_setup(MPI_Comm_set_errhandler(world_->ranks, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check_setup(MPI_Comm_rank(world_->ranks, &rank_), "MPI_Comm_rank");
  check_setup(MPI_Comm_size(world_->ranks, &size_), "MPI_Comm_size");
  check_world(launch, size_);
  int level = MPI_THREAD_SINGLE;
  check_setup(MPI_Query_thread(&level), "MPI_Query_thread");
  serves_all_threads_ = level >= MPI_THREAD_SERIALIZED;
  ++sessions.count;
}

MpiSession::~MpiSession() {
  if (unwinding() || abandoned_ || has_ended()) return;
  MPI_Comm_free(&world_->ranks);
  if (--sessions.count == 0 && sessions.started_mpi) MPI_Finalize();
}

const MpiSession::World& MpiSession::world() const {
  if (has_ended()) {
    throw UsageError("MPI has ended before the ranks have",
                     "the program called MPI_Finalize",
                     "end the communicator first");
  }
  if (!serves_all_threads_ && std::this_thread::get_id() != thread_) {
    throw UsageError("another thread than that which connected the ranks calls them",
                     "this MPI serves one thread",
                     "calls by one thread, or MPI_Init_thread(MPI_THREAD_SERIALIZED) first");
  }
  return *world_;
}

bool MpiSession::unwinding() const {
  return std::uncaught_exceptions() > exceptions_;
}

// MPI's own text continues: "Open MPI v4.1.4, package: ...".
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
