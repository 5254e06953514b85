// Messages between ranks over TCP: a connection between every two of them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "comm/messages/message_transport.h"
#include "comm/tcp/link.h"
#include "comm/tcp/meeting.h"

namespace lockstep::comm::tcp {

// Has no sum of its own. After an error, and when a round is given up, it is of no more use, and
// the peers notice.
class TcpTransport : public MessageTransport {
 public:
  TcpTransport(int rank, std::vector<UniqueFd> sockets, bool shares_cores);

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(links_.size()); }
  bool shares_cores() const override { return shares_cores_; }

  std::unique_ptr<Round> start(const Operation& operation,
                               std::span<const Send> sends,
                               std::span<const Receive> receives) override;

  Link& link(int peer) { return links_[static_cast<size_t>(peer)]; }
  // Moves the messages of all rounds on. Errors: CommError.
  void progress();
  // Peers among these whose connection ended a while ago, with all that they had sent received.
  std::vector<int> gone(std::span<const int> peers) const;
  void abandon();
  bool is_abandoned() const { return abandoned_; }

 private:
  const int rank_;
  const bool shares_cores_;
  std::vector<Link> links_;  // by rank; the own one is never used
  bool abandoned_ = false;
};

}  // namespace lockstep::comm::tcp
