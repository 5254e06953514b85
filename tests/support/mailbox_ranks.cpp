#include "tests/support/mailbox_ranks.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "comm/messages/message_communicator.h"

namespace lockstep::testing {
namespace {

using comm::Operation;
using comm::Receive;
using comm::Send;

struct Message {
  Operation operation;
  std::span<const std::byte> bytes;
  bool taken = false;
};

// Holds messages until their receivers take them. Thread safety: all functions may be called from
// any thread.
class Mailboxes {
 public:
  explicit Mailboxes(int ranks)
      : ranks_(static_cast<size_t>(ranks)), boxes_(ranks_ * ranks_), left_(ranks_) {}

  std::shared_ptr<Message> post(const Operation& operation, int from, const Send& send) {
    const std::lock_guard lock(mutex_);
    auto message = std::make_shared<Message>(Message{operation, send.bytes});
    box(from, send.to).push_back(message);
    return message;
  }

  // True if there was a message.
  bool take(const Operation& operation, int to, const Receive& receive) {
    const std::lock_guard lock(mutex_);
    auto& messages = box(receive.from, to);
    const auto found = std::ranges::find(
        messages, operation.sequence, [](const auto& each) { return each->operation.sequence; });
    if (found == messages.end()) {
      if (left_[static_cast<size_t>(receive.from)]) throw lost_peer(operation, to, receive.from);
      return false;
    }
    Message& message = **found;
    if (message.operation.kind != operation.kind || message.bytes.size() != receive.bytes.size()) {
      throw CommError(fmt::format("ranks {} and {} made different calls", receive.from, to),
                      fmt::format("rank {} is in {} with {} bytes, rank {} is in {} with {} bytes",
                                  receive.from,
                                  to_string(message.operation),
                                  message.bytes.size(),
                                  to,
                                  to_string(operation),
                                  receive.bytes.size()));
    }
    // Under the lock, so a sender that fails meanwhile cannot free the message's memory.
    std::memcpy(receive.bytes.data(), message.bytes.data(), message.bytes.size());
    message.taken = true;
    messages.erase(found);
    return true;
  }

  bool taken(const Message& message, int from, int to) {
    const std::lock_guard lock(mutex_);
    if (message.taken) return true;
    if (left_[static_cast<size_t>(to)]) throw lost_peer(message.operation, from, to);
    return false;
  }

  // Withdraws a message that has not been received.
  void withdraw(const std::shared_ptr<Message>& message, int from, int to) {
    const std::lock_guard lock(mutex_);
    std::erase(box(from, to), message);
  }

  void leave(int rank, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!first_error_) first_error_ = std::move(error);
    left_[static_cast<size_t>(rank)] = true;
  }

  // Requires: all ranks have left.
  void rethrow_first_error() const {
    if (first_error_) std::rethrow_exception(first_error_);
  }

 private:
  using Box = std::vector<std::shared_ptr<Message>>;

  Box& box(int from, int to) {
    return boxes_[static_cast<size_t>(from) * ranks_ + static_cast<size_t>(to)];
  }
  static CommError lost_peer(const Operation& operation, int rank, int peer) {
    return comm::lost_peer_error(operation, rank, {&peer, 1});
  }

  const size_t ranks_;
  std::mutex mutex_;
  std::vector<Box> boxes_;  // in the order of posting, one for each ordered pair of ranks
  std::vector<bool> left_;
  std::exception_ptr first_error_;
};

class MailboxRound : public comm::Round {
 public:
  MailboxRound(Mailboxes& mailboxes,
               int rank,
               const Operation& operation,
               std::span<const Send> sends,
               std::span<const Receive> receives)
      : mailboxes_(mailboxes),
        rank_(rank),
        operation_(operation),
        receives_(receives.begin(), receives.end()) {
    for (const Send& send : sends) {
      sends_.push_back({send.to, mailboxes_.post(operation, rank_, send)});
    }
  }
  ~MailboxRound() override {
    for (const Posted& send : sends_) mailboxes_.withdraw(send.message, rank_, send.to);
  }

  bool test() override {
    std::erase_if(receives_, [this](const Receive& receive) {
      return mailboxes_.take(operation_, rank_, receive);
    });
    std::erase_if(sends_, [this](const Posted& send) {
      return mailboxes_.taken(*send.message, rank_, send.to);
    });
    return receives_.empty() && sends_.empty();
  }

  std::vector<int> unfinished_peers() override {
    std::vector<int> peers;
    for (const Receive& receive : receives_) peers.push_back(receive.from);
    for (const Posted& send : sends_) peers.push_back(send.to);
    std::ranges::sort(peers);
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
    return peers;
  }

 private:
  struct Posted {
    int to;
    std::shared_ptr<Message> message;
  };

  Mailboxes& mailboxes_;
  const int rank_;
  const Operation operation_;
  std::vector<Receive> receives_;
  std::vector<Posted> sends_;
};

class MailboxTransport : public comm::MessageTransport {
 public:
  MailboxTransport(int rank, int size, Mailboxes& mailboxes)
      : rank_(rank), size_(size), mailboxes_(mailboxes) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool shares_cores() const override { return true; }

  std::unique_ptr<comm::Round> start(const Operation& operation,
                                     std::span<const Send> sends,
                                     std::span<const Receive> receives) override {
    return std::make_unique<MailboxRound>(mailboxes_, rank_, operation, sends, receives);
  }

 private:
  const int rank_;
  const int size_;
  Mailboxes& mailboxes_;
};

}  // namespace

void spawn_mailbox_ranks(int ranks,
                         const std::function<void(Communicator&)>& body,
                         std::chrono::milliseconds stall_abort) {
  Mailboxes mailboxes(ranks);
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&mailboxes, &body, rank, ranks, stall_abort] {
      std::exception_ptr error;
      try {
        comm::MessageCommunicator peers(std::make_unique<MailboxTransport>(rank, ranks, mailboxes),
                                        stall_abort);
        body(peers);
      } catch (...) {
        error = std::current_exception();
      }
      mailboxes.leave(rank, std::move(error));
    });
  }
  for (std::thread& thread : threads) thread.join();
  mailboxes.rethrow_first_error();
}

}  // namespace lockstep::testing
