// Ranks as processes that met without MPI.
#pragma once

#include <chrono>
#include <vector>

#include "comm/messages/message_communicator.h"
#include "comm/tcp/tcp_transport.h"

namespace lockstep::comm::tcp {

class TcpCommunicator : public MessageCommunicator {
 public:
  // `sockets`: of meet().
  TcpCommunicator(int rank,
                  std::vector<UniqueFd> sockets,
                  bool shares_cores,
                  std::chrono::milliseconds stall_abort = kDefaultStallAbort,
                  LostAtEnd lost_at_end = {});
  TcpCommunicator(const TcpCommunicator&) = delete;
  TcpCommunicator& operator=(const TcpCommunicator&) = delete;
  // Waits for the peers as every call does, and tells `lost_at_end` when one never comes. While an
  // exception is under way, and after an error, it waits for nobody.
  ~TcpCommunicator() override;

  std::vector<int> gone() override;

 private:
  // Takes the transport.
  TcpCommunicator(TcpTransport* transport,
                  std::chrono::milliseconds stall_abort,
                  LostAtEnd lost_at_end);

  TcpTransport& transport_;
  const LostAtEnd lost_at_end_;
  const int exceptions_;
};

}  // namespace lockstep::comm::tcp
