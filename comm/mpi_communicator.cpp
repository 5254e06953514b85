#include "comm/mpi_communicator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <mpi.h>

#include "comm/backoff.h"
#include "comm/die.h"

namespace lockstep::comm {
namespace {

using Clock = std::chrono::steady_clock;

std::string message_of(int status) {
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  MPI_Error_string(status, text.data(), &length);
  text.resize(static_cast<size_t>(length));
  return text;
}

void check_setup(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  throw EnvironmentError(fmt::format("{} failed", call), message_of(status));
}

void check(int status, const Operation& operation, int rank) {
  if (status == MPI_SUCCESS) return;
  throw CommError(fmt::format("rank {} lost a peer in {}", rank, to_string(operation)),
                  message_of(status));
}

// First line of what the library calls itself: "Open MPI v4.1.4, package: ...".
std::string library_name() {
  std::string text(MPI_MAX_LIBRARY_VERSION_STRING, '\0');
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  return text.substr(0, text.find_first_of(",\n\0", 0, 3));
}

void check_world(const Launch& launch, int size) {
  if (launch.size == 0 || launch.size == size) return;
  throw EnvironmentError(
      fmt::format("the launcher started {} ranks, but MPI connects {}", launch.size, size),
      fmt::format("this program uses {}; the launcher belongs to another MPI", library_name()),
      "start it with the mpirun of the MPI that it was built with; under Slurm with srun "
      "--mpi=pmix");
}

// Never above the tags that the standard guarantees (32767). Ranks in different calls do not match.
int tag_of(const Operation& operation) {
  return static_cast<int>(operation.sequence % 4096 * 8) + static_cast<int>(operation.kind);
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
        "this MPI allows no threads", library_name(), "use an MPI built with thread support");
  }
}

MpiSession::~MpiSession() {
  if (!unwinding()) MPI_Finalize();
}

bool MpiSession::unwinding() const {
  return std::uncaught_exceptions() > exceptions_;
}

// The pieces of one exchange; memory is kept from call to call.
struct MpiCommunicator::Requests {
  struct Piece {
    int peer;
    int bytes;
    bool received;
  };

  void clear() {
    handles.clear();
    pieces.clear();
  }

  // Ascending, each once.
  std::vector<int> unfinished_peers() {
    std::vector<int> peers;
    for (size_t i = 0; i < handles.size(); ++i) {
      int done = 0;
      MPI_Test(&handles[i], &done, MPI_STATUS_IGNORE);
      if (done == 0) peers.push_back(pieces[i].peer);
    }
    std::ranges::sort(peers);
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
    return peers;
  }

  std::vector<MPI_Request> handles;
  std::vector<Piece> pieces;
  std::vector<MPI_Status> statuses;
};

MpiCommunicator::MpiCommunicator(std::unique_ptr<MpiSession> session,
                                 std::chrono::milliseconds stall_abort,
                                 size_t piece_bytes)
    : DirectCommunicator(session->rank(), session->size()),
      session_(std::move(session)),
      stall_abort_(stall_abort),
      piece_bytes_(piece_bytes),
      requests_(std::make_unique<Requests>()) {}

MpiCommunicator::~MpiCommunicator() {
  if (session_->unwinding()) return;
  try {
    barrier();
  } catch (const Error& error) {
    std::fputs(format_error(error).c_str(), stderr);
    die(error.code());
  }
}

void MpiCommunicator::exchange(const Operation& operation,
                               std::span<const Send> sends,
                               std::span<const Receive> receives) {
  const int tag = tag_of(operation);
  requests_->clear();
  const auto for_each_piece = [&](int peer, auto bytes, bool received, auto&& start) {
    for (size_t begin = 0; begin < bytes.size(); begin += piece_bytes_) {
      const auto piece = bytes.subspan(begin, std::min(piece_bytes_, bytes.size() - begin));
      const int count = static_cast<int>(piece.size());
      MPI_Request& handle = requests_->handles.emplace_back(MPI_REQUEST_NULL);
      requests_->pieces.push_back({peer, count, received});
      check(start(piece.data(), count, &handle), operation, rank());
    }
  };
  for (const Receive& message : receives) {
    for_each_piece(message.from, message.bytes, true, [&](auto* data, int count, auto* handle) {
      return MPI_Irecv(data, count, MPI_BYTE, message.from, tag, MPI_COMM_WORLD, handle);
    });
  }
  for (const Send& message : sends) {
    for_each_piece(message.to, message.bytes, false, [&](auto* data, int count, auto* handle) {
      return MPI_Isend(data, count, MPI_BYTE, message.to, tag, MPI_COMM_WORLD, handle);
    });
  }
  wait(operation);
}

void MpiCommunicator::wait(const Operation& operation) {
  std::vector<MPI_Request>& handles = requests_->handles;
  std::vector<MPI_Status>& statuses = requests_->statuses;
  statuses.resize(handles.size());
  const Clock::time_point deadline = Clock::now() + stall_abort_;
  Backoff backoff(session_->shares_cores());
  int done = 0;
  while (true) {
    const int status =
        MPI_Testall(static_cast<int>(handles.size()), handles.data(), &done, statuses.data());
    if (status == MPI_ERR_IN_STATUS) {
      for (const MPI_Status& each : statuses) {
        if (each.MPI_ERROR != MPI_ERR_PENDING) check(each.MPI_ERROR, operation, rank());
      }
    }
    check(status, operation, rank());
    if (done != 0) break;
    if (Clock::now() > deadline) {
      throw stall_error(operation, rank(), requests_->unfinished_peers(), stall_abort_);
    }
    backoff.pause();
  }
  for (size_t i = 0; i < statuses.size(); ++i) {
    const Requests::Piece& piece = requests_->pieces[i];
    int bytes = piece.bytes;
    if (piece.received) MPI_Get_count(&statuses[i], MPI_BYTE, &bytes);
    if (bytes == piece.bytes) continue;
    throw CommError(fmt::format("ranks {} and {} made different calls", rank(), piece.peer),
                    fmt::format("rank {} in {} expected {} bytes and got {}",
                                rank(),
                                to_string(operation),
                                piece.bytes,
                                bytes));
  }
}

}  // namespace lockstep::comm
