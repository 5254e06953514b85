#include "comm/messages/mpi_transport.h"

#include <algorithm>
#include <vector>

#include <fmt/core.h>
#include <mpi.h>

#include "comm/messages/mpi_world.h"

namespace lockstep::comm {
namespace {

// Never above the tags that the standard guarantees (32767). Ranks in different calls do not match.
int tag_of(const Operation& operation) {
  return static_cast<int>(operation.sequence % 4096 * 8) + static_cast<int>(operation.kind);
}

// Calls start(piece) for each piece of `bytes`, at most piece_bytes long.
template <class Bytes, class Start>
void for_each_piece(Bytes bytes, size_t piece_bytes, Start&& start) {
  for (size_t begin = 0; begin < bytes.size(); begin += piece_bytes) {
    start(bytes.subspan(begin, std::min(piece_bytes, bytes.size() - begin)));
  }
}

// A set of requests that are under way together.
class MpiRequests : public Round {
 public:
  MpiRequests(const Operation& operation, const MpiSession& session)
      : operation_(operation), rank_(session.rank()), ranks_(session.world().ranks) {}

  bool test() override;
  void check(int status) const;

 protected:
  // Makes a request by start(MPI_Request*).
  template <class Start>
  void add(Start&& start) {
    check(start(&handles_.emplace_back(MPI_REQUEST_NULL)));
  }
  // Called when all requests are complete.
  virtual void finish(std::span<const MPI_Status>) {}

  const Operation operation_;
  const int rank_;
  const MPI_Comm ranks_;
  std::vector<MPI_Request> handles_;

 private:
  std::vector<MPI_Status> statuses_;
};

bool MpiRequests::test() {
  statuses_.resize(handles_.size());
  int done = 0;
  const int status =
      MPI_Testall(static_cast<int>(handles_.size()), handles_.data(), &done, statuses_.data());
  if (status == MPI_ERR_IN_STATUS) {
    for (const MPI_Status& each : statuses_) {
      if (each.MPI_ERROR != MPI_ERR_PENDING) check(each.MPI_ERROR);
    }
  }
  check(status);
  if (done != 0) finish(statuses_);
  return done != 0;
}

void MpiRequests::check(int status) const {
  if (status == MPI_SUCCESS) return;
  throw CommError(fmt::format("rank {} lost a peer in {}", rank_, to_string(operation_)),
                  mpi_error_text(status));
}

class MpiMessages : public MpiRequests {
 public:
  using MpiRequests::MpiRequests;
  MpiMessages(const MpiMessages&) = delete;
  MpiMessages& operator=(const MpiMessages&) = delete;
  // MPI must not write into memory that was freed.
  ~MpiMessages() override {
    for (size_t i = 0; i < handles_.size(); ++i) {
      if (handles_[i] == MPI_REQUEST_NULL || !pieces_[i].received) continue;
      MPI_Cancel(&handles_[i]);
      MPI_Request_free(&handles_[i]);
    }
  }

  void send(const Send& message, size_t piece_bytes) {
    for_each_piece(message.bytes, piece_bytes, [&](std::span<const std::byte> piece) {
      const int count = static_cast<int>(piece.size());
      pieces_.push_back({message.to, count, false});
      add([&](MPI_Request* request) {
        return MPI_Isend(
            piece.data(), count, MPI_BYTE, message.to, tag_of(operation_), ranks_, request);
      });
    });
  }
  void receive(const Receive& message, size_t piece_bytes) {
    for_each_piece(message.bytes, piece_bytes, [&](std::span<std::byte> piece) {
      const int count = static_cast<int>(piece.size());
      pieces_.push_back({message.from, count, true});
      add([&](MPI_Request* request) {
        return MPI_Irecv(
            piece.data(), count, MPI_BYTE, message.from, tag_of(operation_), ranks_, request);
      });
    });
  }

  std::vector<int> unfinished_peers() override;

 private:
  struct Piece {
    int peer;
    int bytes;
    bool received;
  };

  void finish(std::span<const MPI_Status> statuses) override;

  std::vector<Piece> pieces_;  // one per request
};

std::vector<int> MpiMessages::unfinished_peers() {
  std::vector<int> peers;
  for (size_t i = 0; i < handles_.size(); ++i) {
    int done = 0;
    MPI_Request_get_status(handles_[i], &done, MPI_STATUS_IGNORE);  // test() will ask again
    if (done == 0) peers.push_back(pieces_[i].peer);
  }
  std::ranges::sort(peers);
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  return peers;
}

void MpiMessages::finish(std::span<const MPI_Status> statuses) {
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    int bytes = piece.bytes;
    if (piece.received) MPI_Get_count(&statuses[i], MPI_BYTE, &bytes);
    if (bytes == piece.bytes) continue;
    throw CommError(fmt::format("ranks {} and {} made different calls", rank_, piece.peer),
                    fmt::format("rank {} in {} expected {} bytes and got {}",
                                rank_,
                                to_string(operation_),
                                piece.bytes,
                                bytes));
  }
}

class MpiSums : public MpiRequests {
 public:
  using MpiRequests::MpiRequests;

  void sum(std::span<float> values) {
    add([&](MPI_Request* request) {
      return MPI_Iallreduce(MPI_IN_PLACE,
                            values.data(),
                            static_cast<int>(values.size()),
                            MPI_FLOAT,
                            MPI_SUM,
                            ranks_,
                            request);
    });
  }
  std::vector<int> unfinished_peers() override { return {}; }
};

}  // namespace

std::unique_ptr<Round> MpiTransport::start(const Operation& operation,
                                           std::span<const Send> sends,
                                           std::span<const Receive> receives) {
  auto round = std::make_unique<MpiMessages>(operation, *session_);
  for (const Receive& message : receives) round->receive(message, piece_bytes_);
  for (const Send& message : sends) round->send(message, piece_bytes_);
  return round;
}

std::unique_ptr<Round> MpiTransport::start_library_sum(const Operation& operation, Tensor& values) {
  if (values.dtype() != Dtype::kF32) {
    throw UsageError(
        "MPI's own all-reduce sums f32 alone",
        fmt::format("the values are {}, for which MPI has no type", name_of(values.dtype())),
        "exchange f32, or use the tree, the ring or the star",
        Remedy::kAlgorithm);
  }
  auto round = std::make_unique<MpiSums>(operation, *session_);
  for_each_piece(values.span<float>(),
                 std::max<size_t>(1, piece_bytes_ / sizeof(float)),
                 [&](std::span<float> piece) { round->sum(piece); });
  return round;
}

}  // namespace lockstep::comm
