// All collectives from one primitive, so that every transport gives the same bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/operation.h"
#include "core/communicator.h"
#include "core/tensor.h"

namespace lockstep::comm {

// The all-reduce is direct: each rank sends slice j of its values to rank j, which sums all ranks'
// slices in core/tree.h's order, and sends the sum to all. On the wire that is as much as a ring
// moves, with 2 latencies instead of 2(n-1).
class DirectCommunicator : public Communicator {
 public:
  int rank() const final { return rank_; }
  int size() const final { return size_; }

  void barrier() final;
  void broadcast(std::span<std::byte> bytes, int root) final;
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) final;
  void all_reduce_sum(std::span<float> values) final;
  void all_reduce_sum(std::span<int64_t> values) final;
  std::unique_ptr<Work> start_all_reduce(const AllReduce& what) final;
  void reduce_scatter_sum(std::span<const float> values, std::span<float> mine) final;

 protected:
  struct Send {
    int to;
    std::span<const std::byte> bytes;
  };
  struct Receive {
    int from;
    std::span<std::byte> bytes;
  };

  DirectCommunicator(int rank, int size);

  // Returns when all sends are delivered and all receives filled. Messages are never empty, never
  // to this rank itself, at most one each way for each peer, and of the size that the peer expects.
  // Messages between two ranks arrive in order. Errors: CommError.
  virtual void exchange(const Operation& operation,
                        std::span<const Send> sends,
                        std::span<const Receive> receives) = 0;

 private:
  Operation next(Operation::Kind kind) { return {kind, ++sequence_}; }
  void gather(const Operation& operation,
              std::span<const std::byte> mine,
              std::span<std::byte> all);
  template <class T>
  void reduce(const Operation& operation, std::span<T> values);

  void send(int to, std::span<const std::byte> bytes);
  void receive(int from, std::span<std::byte> bytes);
  void flush(const Operation& operation);

  const int rank_;
  const int size_;
  uint64_t sequence_ = 0;
  std::vector<Send> sends_;
  std::vector<Receive> receives_;
  Tensor received_;  // grows, never shrinks
};

}  // namespace lockstep::comm
