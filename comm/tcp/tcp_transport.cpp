#include "comm/tcp/tcp_transport.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace lockstep::comm::tcp {
namespace {

// The launcher reports the exit code of the rank that it sees ending first, which should be the one
// that failed.
constexpr std::chrono::milliseconds kHeadStart{250};

class TcpRound : public Round {
 public:
  TcpRound(TcpTransport& transport, const Operation& operation)
      : transport_(transport), operation_(operation) {}
  TcpRound(const TcpRound&) = delete;
  TcpRound& operator=(const TcpRound&) = delete;
  ~TcpRound() override {
    if (!missing().empty()) transport_.abandon();
  }

  void start(std::span<const Send> sends, std::span<const Receive> receives) {
    for (const Receive& each : receives) {
      transport_.link(each.from).expect(operation_, each.bytes, add(each.from));
    }
    for (const Send& each : sends) {
      transport_.link(each.to).send(operation_, each.bytes, add(each.to));
    }
  }

  bool test() override {
    transport_.progress();
    const std::vector<int> peers = missing();
    if (peers.empty()) return true;
    const std::vector<int> gone = transport_.gone(peers);
    if (!gone.empty()) throw lost_peer_error(operation_, transport_.rank(), gone);
    return false;
  }

  std::vector<int> unfinished_peers() override { return missing(); }

 private:
  struct Part {
    int peer;
    bool done;
  };

  bool& add(int peer) { return parts_.emplace_back(Part{peer, false}).done; }

  std::vector<int> missing() const {
    std::vector<int> peers;
    for (const Part& part : parts_) {
      if (!part.done) peers.push_back(part.peer);
    }
    std::ranges::sort(peers);
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
    return peers;
  }

  TcpTransport& transport_;
  const Operation operation_;
  std::deque<Part> parts_;  // links point to them
};

}  // namespace

TcpTransport::TcpTransport(int rank, std::vector<UniqueFd> sockets, bool shares_cores)
    : rank_(rank), shares_cores_(shares_cores) {
  links_.reserve(sockets.size());
  for (UniqueFd& socket : sockets) {
    links_.emplace_back(std::move(socket), rank, static_cast<int>(links_.size()));
  }
}

std::unique_ptr<Round> TcpTransport::start(const Operation& operation,
                                           std::span<const Send> sends,
                                           std::span<const Receive> receives) {
  auto round = std::make_unique<TcpRound>(*this, operation);
  round->start(sends, receives);
  return round;
}

void TcpTransport::progress() {
  for (Link& link : links_) {
    if (link.peer() != rank_) link.progress();
  }
}

std::vector<int> TcpTransport::gone(std::span<const int> peers) const {
  std::vector<int> gone;
  for (const int peer : peers) {
    const auto since = links_[static_cast<size_t>(peer)].closed_since();
    if (since && Clock::now() - *since >= kHeadStart) gone.push_back(peer);
  }
  return gone;
}

void TcpTransport::abandon() {
  abandoned_ = true;
  for (Link& link : links_) link.abandon();
}

}  // namespace lockstep::comm::tcp
