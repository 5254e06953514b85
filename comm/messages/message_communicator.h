// Builds all collectives from one primitive, so that every transport of messages gives the same
// bits.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>

#include "comm/messages/message_engine.h"
#include "comm/messages/message_transport.h"
#include "comm/operation.h"
#include "core/communicator.h"
#include "core/stream.h"

namespace lockstep::comm {

// All-reduce follows comm/schedule.h. A work makes progress while this rank is in a call of any
// work or of the communicator. The transport's own all-reduce does not count moved bytes.
class MessageCommunicator : public Communicator {
 public:
  explicit MessageCommunicator(std::unique_ptr<MessageTransport> transport,
                               std::chrono::milliseconds stall_abort = kDefaultStallAbort);

  int rank() const final { return engine_.rank(); }
  int size() const final { return engine_.size(); }

  void barrier() final;
  void broadcast(std::span<std::byte> bytes, int root) final;
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) final;
  // Errors: UsageError for kLibrary where the transport has none for these values; DtypeError.
  std::unique_ptr<Work> start_all_reduce(const AllReduce& what) final;
  void all_reduce_sum(std::span<float> values) final;
  void all_reduce_sum(std::span<int64_t> values) final;

  // Makes every later call throw this error: the caller has found that the peers are out of step.
  void give_up(const CommError& error) { engine_.guard().fail(error); }

 protected:
  bool has_given_up() const { return engine_.guard().failure().has_value(); }

 private:
  Operation next(Operation::Kind kind, std::string_view label = {}) {
    return {kind, ++sequence_, label};
  }
  void gather(const Operation& operation,
              std::span<const std::byte> mine,
              std::span<std::byte> all);
  template <class T>
  void reduce(const Operation& operation, std::span<T> values);
  void finish(MessageWork& work);

  MessageEngine engine_;
  Stream stream_;
  uint64_t sequence_ = 0;
};

}  // namespace lockstep::comm
