// Collective operations as sequences of rounds, and the one place where a rank waits for messages.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "comm/call_guard.h"
#include "comm/messages/message_transport.h"
#include "comm/operation.h"
#include "core/communicator.h"
#include "core/tensor.h"

namespace lockstep::comm {

class MessageWork;

// All works under way on one rank. A wait for one of them moves the others on too, so that
// ranks that wait in different orders do not wait for each other.
class MessageEngine {
 public:
  // `traffic` counts what is sent. `context` is read when a rank enters a call, waits in it and
  // leaves it.
  MessageEngine(std::unique_ptr<MessageTransport> transport,
                std::chrono::milliseconds stall_abort,
                Traffic& traffic,
                const CallContext& context);
  MessageEngine(const MessageEngine&) = delete;
  MessageEngine& operator=(const MessageEngine&) = delete;
  ~MessageEngine() = default;

  MessageTransport& transport() { return *transport_; }
  CallGuard& guard() { return guard_; }
  FlightRecorder* recorder() const { return context_.recorder; }
  const CallGuard& guard() const { return guard_; }
  int rank() const { return transport_->rank(); }
  int size() const { return transport_->size(); }

  // Empty messages are left out; null when nothing is left.
  std::unique_ptr<Round> start(const Operation& operation,
                               std::span<const Send> sends,
                               std::span<const Receive> receives);

  // Starts the first round.
  void launch(MessageWork& work);
  // Does everything that can be done without waiting.
  void advance();
  // Errors: CommError when a round of this work takes longer than the deadline.
  void wait(MessageWork& work);
  void forget(MessageWork& work);

 private:
  const std::unique_ptr<MessageTransport> transport_;
  const std::chrono::milliseconds stall_abort_;
  Traffic& traffic_;
  const CallContext& context_;
  CallGuard guard_;
  std::vector<MessageWork*> under_way_;  // in the order of their start
};

// A collective as a state machine: when a round is complete, it does its arithmetic and starts the
// next one. The engine must outlive it.
class MessageWork : public Work {
 public:
  MessageWork(const MessageWork&) = delete;
  MessageWork& operator=(const MessageWork&) = delete;
  ~MessageWork() override { engine_.forget(*this); }

  bool advance() final;
  void wait() final;

  const Operation& operation() const { return operation_; }
  bool done() const { return done_; }
  // Increases with each completed round.
  int64_t rounds() const { return rounds_; }
  // Goes as far as it can without waiting. Errors: CommError.
  void step();
  // Peers whose part of the round under way is missing.
  std::vector<int> unfinished_peers() const;

 protected:
  // Peers may read `values` until the work is destroyed. Undefined where the caller keeps the
  // memory alive.
  MessageWork(MessageEngine& engine, const Operation& operation, Tensor values = {})
      : engine_(engine), operation_(operation), values_(std::move(values)) {}

  // Called at the start, then whenever the round that it began is complete. Returns false when the
  // result is in place.
  virtual bool next_round() = 0;

  // To be called at most once in next_round().
  void exchange(std::span<const Send> sends, std::span<const Receive> receives) {
    round_ = engine_.start(operation_, sends, receives);
  }
  // Ends the round under way. Destructors call it where peers' messages go to members of theirs.
  void end_round() { round_.reset(); }
  void sum_by_library() { round_ = engine_.transport().start_library_sum(operation_, values_); }

  const Tensor& values() const { return values_; }

  int rank() const { return engine_.rank(); }
  int size() const { return engine_.size(); }

 private:
  MessageEngine& engine_;
  const Operation operation_;
  Tensor values_;
  std::unique_ptr<Round> round_;
  int64_t rounds_ = 0;
  bool done_ = false;
};

}  // namespace lockstep::comm
