#include "comm/thread_communicator.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace lockstep::comm {
namespace {

using Clock = std::chrono::steady_clock;

// Where messages wait for their receiver: one slot for each ordered pair of ranks.
// Thread safety: all functions may be called from any thread.
class Mailboxes {
 public:
  Mailboxes(int ranks, std::chrono::milliseconds stall_abort)
      : ranks_(static_cast<size_t>(ranks)),
        stall_abort_(stall_abort),
        slots_(ranks_ * ranks_),
        left_(ranks_) {}

  Clock::time_point deadline() const { return Clock::now() + stall_abort_; }

  void post(const Operation& operation, int from, int to, std::span<const std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    slot(from, to) = {operation, bytes, true};
    changed_.notify_all();
  }

  void take(const Operation& operation,
            int from,
            int to,
            std::span<std::byte> bytes,
            Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    Slot& message = slot(from, to);
    wait(lock, operation, to, from, deadline, [&] { return message.full; });
    if (message.operation != operation || message.bytes.size() != bytes.size()) {
      throw CommError(fmt::format("ranks {} and {} made different calls", from, to),
                      fmt::format("rank {} is in {} with {} bytes, rank {} is in {} with {} bytes",
                                  from,
                                  to_string(message.operation),
                                  message.bytes.size(),
                                  to,
                                  to_string(operation),
                                  bytes.size()));
    }
    // Under the lock: a sender that fails meanwhile cannot take its memory away.
    std::memcpy(bytes.data(), message.bytes.data(), bytes.size());
    message.full = false;
    changed_.notify_all();
  }

  void wait_until_taken(const Operation& operation, int from, int to, Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    wait(lock, operation, from, to, deadline, [&] { return !slot(from, to).full; });
  }

  // Takes back what nobody has received.
  void withdraw(int from) {
    const std::lock_guard lock(mutex_);
    for (int to = 0; to < static_cast<int>(ranks_); ++to) slot(from, to).full = false;
  }

  void leave(int rank, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!first_error_) first_error_ = std::move(error);
    left_[static_cast<size_t>(rank)] = true;
    changed_.notify_all();
  }

  // Requires: all ranks have left.
  void rethrow_first_error() const {
    if (first_error_) std::rethrow_exception(first_error_);
  }

 private:
  struct Slot {
    Operation operation;
    std::span<const std::byte> bytes;
    bool full = false;
  };

  Slot& slot(int from, int to) {
    return slots_[static_cast<size_t>(from) * ranks_ + static_cast<size_t>(to)];
  }

  template <class Ready>
  void wait(std::unique_lock<std::mutex>& lock,
            const Operation& operation,
            int rank,
            int peer,
            Clock::time_point deadline,
            Ready ready) {
    const auto peer_left = [&] { return left_[static_cast<size_t>(peer)]; };
    changed_.wait_until(lock, deadline, [&] { return ready() || peer_left(); });
    if (ready()) return;
    if (!peer_left()) throw stall_error(operation, rank, {&peer, 1}, stall_abort_);
    throw CommError(fmt::format("rank {} lost a peer in {}", rank, to_string(operation)),
                    fmt::format("rank {} is gone", peer));
  }

  const size_t ranks_;
  const std::chrono::milliseconds stall_abort_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Slot> slots_;
  std::vector<bool> left_;
  std::exception_ptr first_error_;
};

class ThreadCommunicator : public DirectCommunicator {
 public:
  ThreadCommunicator(int rank, int size, Mailboxes& mailboxes)
      : DirectCommunicator(rank, size), mailboxes_(mailboxes) {}

 private:
  void exchange(const Operation& operation,
                std::span<const Send> sends,
                std::span<const Receive> receives) override {
    const Clock::time_point deadline = mailboxes_.deadline();
    try {
      for (const Send& message : sends) {
        mailboxes_.post(operation, rank(), message.to, message.bytes);
      }
      for (const Receive& message : receives) {
        mailboxes_.take(operation, message.from, rank(), message.bytes, deadline);
      }
      for (const Send& message : sends) {
        mailboxes_.wait_until_taken(operation, rank(), message.to, deadline);
      }
    } catch (...) {
      mailboxes_.withdraw(rank());
      throw;
    }
  }

  Mailboxes& mailboxes_;
};

}  // namespace

void spawn_ranks(int ranks,
                 const std::function<void(Communicator&)>& body,
                 std::chrono::milliseconds stall_abort) {
  Mailboxes mailboxes(ranks, stall_abort);
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&mailboxes, &body, rank, ranks] {
      std::exception_ptr error;
      try {
        ThreadCommunicator peers(rank, ranks, mailboxes);
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

}  // namespace lockstep::comm
