// The interface of the transports that carry messages for collectives.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "comm/operation.h"
#include "core/error.h"
#include "core/tensor.h"

namespace lockstep::comm {

struct Send {
  int to;
  std::span<const std::byte> bytes;
};
struct Receive {
  int from;
  std::span<std::byte> bytes;
};

// Messages on their way. Destroyed before their end only when the rank gives up.
class Round {
 public:
  Round() = default;
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;
  virtual ~Round() = default;

  // True when all sends are delivered and all receives filled; never waits. Errors: CommError.
  virtual bool test() = 0;
  // Ranks whose part is missing, ascending; empty when the transport cannot tell.
  virtual std::vector<int> unfinished_peers() = 0;
};

// The messages of one rank. Those of different operations may be on their way at once and do not
// mix; between two ranks those of one operation arrive in order.
class MessageTransport {
 public:
  MessageTransport() = default;
  MessageTransport(const MessageTransport&) = delete;
  MessageTransport& operator=(const MessageTransport&) = delete;
  virtual ~MessageTransport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // True when a rank that waits may keep another from its core.
  virtual bool shares_cores() const = 0;

  // The memory and the label stay until the round is through. Requires: no empty message and none
  // to this rank; at most one each way for each peer; of the size that the peer expects.
  // Errors: CommError.
  virtual std::unique_ptr<Round> start(const Operation& operation,
                                       std::span<const Send> sends,
                                       std::span<const Receive> receives) = 0;

  // The transport's own sum over ranks, in place. Errors: UsageError where it has none.
  virtual std::unique_ptr<Round> start_library_sum(const Operation&, Tensor&) {
    throw no_library_sum_error();
  }
};

}  // namespace lockstep::comm
