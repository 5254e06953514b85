// All collectives between ranks that share memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "comm/call_guard.h"
#include "comm/operation.h"
#include "comm/shared/call_queue.h"
#include "comm/shared/host.h"
#include "core/communicator.h"
#include "core/stream.h"

namespace lockstep::comm {

// Values in memory of allocate() are summed where they lie. Other memory is carried through a
// staging segment, piece by piece, and start_all_reduce() returns when that is done. Unusable after
// an error.
class SharedCommunicator : public Communicator {
 public:
  // A collective call.
  SharedCommunicator(std::unique_ptr<SharedHost> host, std::chrono::milliseconds stall_abort);

  int rank() const final { return rank_; }
  int size() const final { return size_; }
  std::vector<int> gone() final;

  Tensor allocate(const Shape& shape, Dtype dtype) final;
  void barrier() final;
  void broadcast(std::span<std::byte> bytes, int root) final;
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) final;
  std::unique_ptr<Work> start_all_reduce(const AllReduce& what) final;
  void all_reduce_sum(std::span<float> values) final;
  void all_reduce_sum(std::span<int64_t> values) final;

 protected:
  // For ranks that can also sum by a library. Errors: UsageError where there is none.
  virtual std::unique_ptr<Work> start_library_sum(const AllReduce& what);
  // The error that made it unusable.
  const std::optional<CommError>& failure() const { return guard_.failure(); }

 private:
  struct KnownSegment {
    std::weak_ptr<void> memory;  // gone when no tensor of this rank lies in it any more
    std::vector<std::byte*> parts;
    size_t bytes;
  };

  // The record of this rank's next call.
  CallRecord next(Operation::Kind kind, size_t bytes, Dtype dtype = Dtype::kU8);
  void wait_for_all(const CallRecord& record);

  // Every rank's version of `values` where they lie in a segment, whose place goes into `record`;
  // empty for other memory.
  std::vector<Tensor> find_shared(const Tensor& values, CallRecord& record) const;
  void reduce_staged(const Operation& operation, const CallRecord& record, const Tensor& values);

  // Each rank's part of the half of the staging segment that is free, for one call.
  std::span<std::byte* const> next_half();

  const std::unique_ptr<SharedHost> host_;
  const int rank_;
  const int size_;
  Stream stream_;
  uint64_t sequence_ = 0;
  std::vector<KnownSegment> segments_;
  CallGuard guard_;
  CallQueue queue_;
  std::shared_ptr<void> staging_;
  std::vector<std::byte*> halves_[2];
  uint64_t staged_calls_ = 0;
};

}  // namespace lockstep::comm
