#include "comm/messages/mpi_communicator.h"

#include <cstdio>
#include <utility>

#include "comm/die.h"
#include "comm/messages/mpi_transport.h"

namespace lockstep::comm {

MpiCommunicator::MpiCommunicator(std::shared_ptr<MpiSession> session,
                                 std::chrono::milliseconds stall_abort,
                                 size_t piece_bytes)
    : MessageCommunicator(std::make_unique<MpiTransport>(session, piece_bytes), stall_abort),
      session_(std::move(session)) {}

MpiCommunicator::~MpiCommunicator() {
  if (session_->unwinding()) return;
  try {
    barrier();
  } catch (const Error& error) {
    die(error);
  }
}

}  // namespace lockstep::comm
