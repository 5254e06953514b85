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
                  std::chrono::milliseconds stall_abort = kDefaultStallAbort);
  TcpCommunicator(const TcpCommunicator&) = delete;
  TcpCommunicator& operator=(const TcpCommunicator&) = delete;
  // Waits for the peers as every call does; when one never comes, ends the process with exit code
  // 75 after saying so, because no caller could catch an error here. While an exception is under
  // way it waits for nobody.
  ~TcpCommunicator() override;

 private:
  // Takes the transport.
  TcpCommunicator(TcpTransport* transport, std::chrono::milliseconds stall_abort);

  const TcpTransport& transport_;
  const int exceptions_;
};

}  // namespace lockstep::comm::tcp
