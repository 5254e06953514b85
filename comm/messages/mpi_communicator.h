// Ranks as processes that an MPI launcher started.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "comm/messages/message_communicator.h"
#include "comm/messages/mpi_session.h"

namespace lockstep::comm {

// Keeps the session alive. Thread safety: only for the thread that made the session.
class MpiCommunicator : public MessageCommunicator {
 public:
  // piece_bytes: the longest message that MPI is given.
  explicit MpiCommunicator(std::shared_ptr<MpiSession> session,
                           std::chrono::milliseconds stall_abort = kDefaultStallAbort,
                           LostAtEnd lost_at_end = {},
                           size_t piece_bytes = size_t{1} << 30);
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;
  // Waits for the peers as every call does, and calls `lost_at_end` when one never comes. During an
  // exception, and after an error, it waits for nobody.
  ~MpiCommunicator() override;

 private:
  const std::shared_ptr<MpiSession> session_;
  const LostAtEnd lost_at_end_;
};

}  // namespace lockstep::comm
