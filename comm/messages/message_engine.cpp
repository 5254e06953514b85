#include "comm/messages/message_engine.h"

#include <algorithm>
#include <utility>

#include "comm/backoff.h"
#include "comm/call_record.h"
#include "comm/wait_limit.h"
#include "core/check.h"

namespace lockstep::comm {
MessageEngine::MessageEngine(std::unique_ptr<MessageTransport> transport,
                             std::chrono::milliseconds stall_abort,
                             Traffic& traffic,
                             const CallContext& context)
    : transport_(std::move(transport)),
      stall_abort_(stall_abort),
      traffic_(traffic),
      context_(context) {
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
  record_entry(recorder(), work.operation());
  under_way_.push_back(&work);
  work.step();
  if (work.done()) forget(work);
}

void MessageEngine::advance() {
  for (MessageWork* work : under_way_) work->step();
  std::erase_if(under_way_, [](const MessageWork* work) { return work->done(); });
}

void MessageEngine::wait(MessageWork& work) {
  for (advance(); !work.done(); advance()) {
    const int64_t rounds = work.rounds();
    Backoff backoff(transport_->shares_cores());
    const RecordedWait recorded(recorder(), work.operation());
    WaitLimit limit(stall_abort_, context_);
    while (!work.done() && work.rounds() == rounds) {
      if (limit.warning_is_due()) limit.warn(work.operation(), rank(), work.unfinished_peers());
      limit.look_at([&] { return work.unfinished_peers(); });
      if (limit.left() <= WaitLimit::Clock::duration::zero()) {
        throw limit.error(work.operation(), rank(), work.unfinished_peers());
      }
      backoff.pause();
      advance();
    }
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
    if (done_) record_exit(engine_.recorder(), operation_);
  }
}

std::vector<int> MessageWork::unfinished_peers() const {
  return round_ ? round_->unfinished_peers() : std::vector<int>();
}

}  // namespace lockstep::comm
