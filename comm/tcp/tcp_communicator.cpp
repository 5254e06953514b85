#include "comm/tcp/tcp_communicator.h"

#include <exception>
#include <memory>
#include <utility>

#include "comm/die.h"

namespace lockstep::comm::tcp {

TcpCommunicator::TcpCommunicator(int rank,
                                 std::vector<UniqueFd> sockets,
                                 bool shares_cores,
                                 std::chrono::milliseconds stall_abort)
    : TcpCommunicator(
          std::make_unique<TcpTransport>(rank, std::move(sockets), shares_cores).release(),
          stall_abort) {}

TcpCommunicator::TcpCommunicator(TcpTransport* transport, std::chrono::milliseconds stall_abort)
    : MessageCommunicator(std::unique_ptr<TcpTransport>(transport), stall_abort),
      transport_(*transport),
      exceptions_(std::uncaught_exceptions()) {}

TcpCommunicator::~TcpCommunicator() {
  if (transport_.is_abandoned() || std::uncaught_exceptions() > exceptions_) return;
  try {
    barrier();
  } catch (const Error& error) {
    die(error);
  }
}

}  // namespace lockstep::comm::tcp
