// Messages between ranks that an MPI launcher started.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "comm/messages/message_transport.h"
#include "comm/messages/mpi_session.h"

namespace lockstep::comm {

// Keeps the session alive. Messages are cut into pieces of at most `piece_bytes`, because MPI
// counts them with an int. After an error it is of no more use. Thread safety: only for the thread
// that made the session.
class MpiTransport : public MessageTransport {
 public:
  MpiTransport(std::shared_ptr<MpiSession> session, size_t piece_bytes)
      : session_(std::move(session)), piece_bytes_(piece_bytes) {}

  int rank() const override { return session_->rank(); }
  int size() const override { return session_->size(); }
  bool shares_cores() const override { return session_->shares_cores(); }

  std::unique_ptr<Round> start(const Operation& operation,
                               std::span<const Send> sends,
                               std::span<const Receive> receives) override;
  // MPI_Iallreduce. Errors: UsageError for 16-bit values, for which MPI has no type.
  std::unique_ptr<Round> start_library_sum(const Operation& operation, Tensor& values) override;

 private:
  const std::shared_ptr<MpiSession> session_;
  const size_t piece_bytes_;
};

}  // namespace lockstep::comm
