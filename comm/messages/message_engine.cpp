#include "comm/messages/message_engine.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "comm/backoff.h"
#include "core/check.h"

namespace lockstep::comm {
namespace {

using Clock = std::chrono::steady_clock;

CommError stall_of(const MessageWork& work, int rank, std::chrono::milliseconds waited) {
  const std::vector<int> missing = work.unfinished_peers();
  if (!missing.empty()) return stall_error(work.operation(), rank, missing, waited);
  return CommError(
      fmt::format("rank {} gave up waiting in {}", rank, to_string(work.operation())),
      fmt::format("it was not through after {} s; MPI does not say whose part is missing",
                  static_cast<double>(waited.count()) / 1000),
      "see which rank is stopped, out of memory or only slow",
      Remedy::kLongerWait);
}

}  // namespace

MessageEngine::MessageEngine(std::unique_ptr<MessageTransport> transport,
                             std::chrono::milliseconds stall_abort,
                             Traffic& traffic)
    : transport_(std::move(transport)), stall_abort_(stall_abort), traffic_(traffic) {
  LS_CHECK(0 <= rank() && rank() < size(), "[communicator] rank: got {} of {}", rank(), size());
}

std::unique_ptr<Round> MessageEngine::start(const Operation& operation,
                                            std::span<const Send> sends,
                                            std::span<const Receive> receives) {
  std::vector<Send> full_sends(sends.begin(), sends.end());
  std::vector<Receive> full_receives(receives.begin(), receives.end());
  std::erase_if(full_sends, [](const Send& message) { return message.bytes.empty(); });
  std::erase_if(full_receives, [](const Receive& message) { return message.bytes.empty(); });
  if (full_sends.empty() && full_receives.empty()) return nullptr;
  for (const Send& message : full_sends) {
    traffic_.moved_bytes += static_cast<int64_t>(message.bytes.size());
  }
  return transport_->start(operation, full_sends, full_receives);
}

void MessageEngine::launch(MessageWork& work) {
  under_way_.push_back(&work);
  work.step();
  if (work.done()) forget(work);
}

void MessageEngine::advance() {
  for (MessageWork* work : under_way_) work->step();
  std::erase_if(under_way_, [](const MessageWork* work) { return work->done(); });
}

void MessageEngine::wait(MessageWork& work) {
  Backoff backoff(transport_->shares_cores());
  Clock::time_point deadline = Clock::now() + stall_abort_;
  int64_t rounds = work.rounds();
  for (advance(); !work.done(); advance()) {
    if (work.rounds() != rounds) {
      rounds = work.rounds();
      deadline = Clock::now() + stall_abort_;
      backoff = Backoff(transport_->shares_cores());
    } else if (Clock::now() > deadline) {
      throw stall_of(work, rank(), stall_abort_);
    }
    backoff.pause();
  }
}

void MessageEngine::forget(MessageWork& work) {
  std::erase(under_way_, &work);
}

bool MessageWork::advance() {
  if (!done_) engine_.guard().run([&] { engine_.advance(); });
  return done_;
}

void MessageWork::wait() {
  if (!done_) engine_.guard().run([&] { engine_.wait(*this); });
}

void MessageWork::step() {
  while (!done_) {
    if (round_ && !round_->test()) return;
    round_.reset();
    ++rounds_;
    done_ = !next_round();
  }
}

std::vector<int> MessageWork::unfinished_peers() const {
  return round_ ? round_->unfinished_peers() : std::vector<int>();
}

}  // namespace lockstep::comm
