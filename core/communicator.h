// The interface through which a rank exchanges data with its peers. Implementations live in comm/.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace lockstep {
class FlightRecorder;  // not exported
}

#pragma GCC visibility push(default)
namespace lockstep {

// The algorithms of a sum over ranks. Only kTree and kStar give bits that do not depend on the
// number of ranks (core/tree.h); every algorithm gives the same bits on all ranks, kNone excepted.
enum class Algorithm : uint8_t {
  kTree,     // rank j receives slice j of all ranks, sums it in tree order and sends the sum to all
  kRing,     // reduce-scatter around a ring of ranks, then all-gather around it
  kStar,     // rank 0 sums everything in tree order and sends the sum to all
  kLibrary,  // the transport's own, such as MPI_Allreduce; not every transport has one
  kNone,     // nothing is exchanged, to measure the time of a step without communication
};

struct AllReduce {
  Tensor values;  // summed in place; f32, f16 or bf16; each partial sum is rounded to that type
  Algorithm algorithm = Algorithm::kTree;
  std::string_view label = {};  // for errors; must outlive the work
};

// An operation under way on this rank.
class Work {
 public:
  Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  virtual ~Work() = default;

  // Does what it can without waiting for a peer. Returns true when the result is in place; further
  // calls then do nothing. Errors: CommError.
  virtual bool advance() = 0;
  // Advances until the result is in place. Errors: CommError.
  virtual void wait() = 0;
};

// An operation that is already complete.
class DoneWork : public Work {
 public:
  bool advance() override { return true; }
  void wait() override {}
};

// Counts the bytes that moved between this rank and others. A byte is counted by the rank that does
// the work of moving it: the sender of a message, or the rank that copies or adds it in shared
// memory.
struct Traffic {
  int64_t moved_bytes = 0;
  int64_t reduced_bytes = 0;  // total size of the all-reduced values
};

// A part of a job, such as saving, in which a rank may make no call for a long time. Peers that
// wait for it use `limit` in place of the usual deadline.
struct SlowPart {
  std::string_view doing;  // "saving a checkpoint"
  // Replaces the ranks' deadline, unless that is longer.
  std::chrono::seconds limit;
  // Called on the lowest rank that waits when a wait has exceeded the ranks' deadline.
  std::function<void(const std::string& note)> tell;
  // Whether a rank is stopped by a signal, as far as this rank can see: its peers wait for it no
  // longer than the ranks' deadline.
  std::function<bool(int rank)> is_stopped = {};
};

// Asks for a note about each wait for peers that has lasted `after`, outside of a SlowPart: `tell`
// is called once, on the lowest rank that waits, with the ranks and the call that it waits for.
struct StallWarning {
  std::chrono::milliseconds after;
  std::function<void(const std::string& note)> tell;
};

// The state that a rank's calls use besides their arguments. Not owned; each may be null.
struct CallContext {
  const SlowPart* slow_part = nullptr;
  const StallWarning* warning = nullptr;
  FlightRecorder* recorder = nullptr;
};

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

  // Ranks that are known to have ended; empty where the transport cannot tell.
  virtual std::vector<int> gone() { return {}; }

  // Zeros in memory that peers reach without a copy where the transport can share memory; other
  // tensors are copied through a staging area. A collective call with the same shape on all ranks.
  virtual Tensor allocate(const Shape& shape, Dtype dtype) { return Tensor::zeros(shape, dtype); }

  virtual void barrier() = 0;
  // Copies root's bytes to all ranks.
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
  // all[r * mine.size() ...] = rank r's bytes. Requires: equal sizes on all ranks.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;

  // Starts a sum over ranks in place. Several may be under way at once. They may finish in any
  // order, but all ranks must start them in the same order, and the values must not be accessed
  // until the work is done.
  // Errors: UsageError for an algorithm that the transport does not have; DtypeError.
  virtual std::unique_ptr<Work> start_all_reduce(const AllReduce& what) = 0;
  // In place: every rank gets the sum over ranks in core/tree.h's order, the same bits on each.
  virtual void all_reduce_sum(std::span<float> values) = 0;
  // In place: every rank gets the exact sum over ranks.
  virtual void all_reduce_sum(std::span<int64_t> values) = 0;

  // Puts the ranks into this part, or with null into none, until the next call. All ranks must call
  // it at the same point. Borrows the argument.
  void enter(const SlowPart* part) { context_.slow_part = part; }

  // Sets the warning for later waits; null: none. Borrows the argument. Ranks need not agree.
  void warn_of_stalls(const StallWarning* warning) { context_.warning = warning; }
  void record_in(FlightRecorder* recorder) { context_.recorder = recorder; }
  FlightRecorder* recorder() const { return context_.recorder; }

  // Totals since construction.
  const Traffic& traffic() const { return traffic_; }

 protected:
  Traffic traffic_;
  CallContext context_;
};

// A group of ranks that exchange data directly between their GPUs, in addition to the communicator
// of the same ranks. Calls are ordered in the compute stream, and the host does not wait. Thread
// safety: none.
class DevicePeers {
 public:
  DevicePeers() = default;
  DevicePeers(const DevicePeers&) = delete;
  DevicePeers& operator=(const DevicePeers&) = delete;
  virtual ~DevicePeers() = default;

  // A collective call: all[i] becomes the concatenation of the ranks' mine[i]; rank r's rows are
  // [first_rows[r], first_rows[r + 1]). Shapes: mine[i] (this rank's rows, columns) f32; all[i]
  // (first_rows.back(), columns). Errors: CommError.
  virtual void gather_rows(std::span<const Tensor> mine,
                           std::span<const int64_t> first_rows,
                           std::span<Tensor> all) = 0;
  // A collective call. Copies root's values to all ranks. Tensors: on the device; the same sizes on
  // all ranks. Errors: CommError.
  virtual void broadcast(std::span<Tensor> tensors, int root) = 0;
};

}  // namespace lockstep
#pragma GCC visibility pop
