// What the engine needs from its peers. Implementations live in comm/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

// A fixed group of ranks that all make the same calls in the same order.
// Thread safety: one call at a time per rank.
// Every call that waits for a peer throws CommError when the peer died or the deadline passed.
class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  virtual void barrier() = 0;
  // Copies root's bytes over everybody's.
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
  // all[r * mine.size() ...] = rank r's bytes. Requires: equal sizes on all ranks.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  // In place: every rank gets the sum over ranks in core/tree.h's order, the same bits on each.
  virtual void all_reduce_sum(std::span<float> values) = 0;
  // In place, exact.
  virtual void all_reduce_sum(std::span<int64_t> values) = 0;
};

}  // namespace lockstep
