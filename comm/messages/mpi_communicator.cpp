#include "comm/messages/mpi_communicator.h"

#include <utility>

#include "comm/messages/mpi_transport.h"

namespace lockstep::comm {

MpiCommunicator::MpiCommunicator(std::shared_ptr<MpiSession> session,
                                 std::chrono::milliseconds stall_abort,
                                 LostAtEnd lost_at_end,
                                 size_t piece_bytes)
    : MessageCommunicator(std::make_unique<MpiTransport>(session, piece_bytes), stall_abort),
      session_(std::move(session)),
      lost_at_end_(std::move(lost_at_end)) {}

MpiCommunicator::~MpiCommunicator() {
  if (session_->unwinding()) return;
  if (has_given_up()) {
    session_->abandon();
    return;
  }
  try {
    barrier();
  } catch (const Error& error) {
    session_->abandon();
    if (lost_at_end_) lost_at_end_(error);
  }
}

}  // namespace lockstep::comm
