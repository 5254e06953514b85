#include "comm/tcp/tcp_communicator.h"

#include <exception>
#include <memory>
#include <numeric>
#include <utility>

namespace lockstep::comm::tcp {

TcpCommunicator::TcpCommunicator(int rank,
                                 std::vector<UniqueFd> sockets,
                                 bool shares_cores,
                                 std::chrono::milliseconds stall_abort,
                                 LostAtEnd lost_at_end)
    : TcpCommunicator(
          std::make_unique<TcpTransport>(rank, std::move(sockets), shares_cores).release(),
          stall_abort,
          std::move(lost_at_end)) {}

TcpCommunicator::TcpCommunicator(TcpTransport* transport,
                                 std::chrono::milliseconds stall_abort,
                                 LostAtEnd lost_at_end)
    : MessageCommunicator(std::unique_ptr<TcpTransport>(transport), stall_abort),
      transport_(*transport),
      lost_at_end_(std::move(lost_at_end)),
      exceptions_(std::uncaught_exceptions()) {}

TcpCommunicator::~TcpCommunicator() {
  if (transport_.is_abandoned() || has_given_up() || std::uncaught_exceptions() > exceptions_) {
    return;
  }
  try {
    barrier();
  } catch (const Error& error) {
    if (lost_at_end_) lost_at_end_(error);
  }
}

std::vector<int> TcpCommunicator::gone() {
  std::vector<int> peers(static_cast<size_t>(size()));
  std::iota(peers.begin(), peers.end(), 0);
  transport_.progress();
  return transport_.gone(peers);
}

}  // namespace lockstep::comm::tcp
