// The interface through which the engine talks to its peers. Implementations live in comm/.
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
  kTree,     // slice j goes to rank j, which sums in tree order and hands the sum to all
  kRing,     // each slice travels round the ranks and grows, then round again
  kStar,     // rank 0 sums everything in tree order and hands it out
  kLibrary,  // the transport's own, such as MPI_Allreduce; not every transport has one
  kNone,     // nothing is exchanged: what is left of a step is the cost of its arithmetic
};

struct AllReduce {
  Tensor values;  // summed in place; f32, f16 or bf16, a node of the sum rounded to that type
  Algorithm algorithm = Algorithm::kTree;
  std::string_view label = {};  // for errors; must live as long as the work
};

// An operation under way on this rank.
class Work {
 public:
  Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  virtual ~Work() = default;

  // Does what it can without waiting for a peer. True when the result is in place; further calls do
  // nothing then. Errors: CommError.
  virtual bool advance() = 0;
  // Advances until the result is in place. Errors: CommError.
  virtual void wait() = 0;
};

// The work of an operation that is over.
class DoneWork : public Work {
 public:
  bool advance() override { return true; }
  void wait() override {}
};

// Counts the bytes that crossed the border between this rank and others. A byte counts where the
// work of moving it is done: at its sender for messages, at the rank that copies or adds it for
// shared memory.
struct Traffic {
  int64_t moved_bytes = 0;
  int64_t reduced_bytes = 0;  // size of what was all-reduced
};

// A part of a job in which a rank may be busy for long without a call, such as saving: peers that
// wait for it then are patient.
struct SlowPart {
  std::string_view doing;  // "saving a checkpoint"
  // Takes the place of the ranks' deadline, unless that is longer.
  std::chrono::seconds limit;
  // Hears of a wait that has become longer than the ranks' deadline, on the lowest rank that waits.
  std::function<void(const std::string& note)> tell;
};

// A wait for peers that has lasted so long, outside of a SlowPart, is told once on the lowest rank
// that waits, with the ranks and the call that it waits for.
struct StallWarning {
  std::chrono::milliseconds after;
  std::function<void(const std::string& note)> tell;
};

// The state that a rank's calls heed beside their arguments. Borrowed; each may be null.
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

  // Ranks that are known to have ended; none where the transport cannot tell.
  virtual std::vector<int> gone() { return {}; }

  // Zeros in memory that peers reach without a copy where the transport can share memory; other
  // tensors are copied through a staging area. A collective call, shapes alike on all ranks.
  virtual Tensor allocate(const Shape& shape, Dtype dtype) { return Tensor::zeros(shape, dtype); }

  virtual void barrier() = 0;
  // Copies root's bytes to all ranks.
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
  // all[r * mine.size() ...] = rank r's bytes. Requires: equal sizes on all ranks.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;

  // Starts a sum over ranks in place. Several may be under way; they may finish in any order, but
  // all ranks must start them in one order, and the values must not be touched until then.
  // Errors: UsageError for an algorithm that the transport does not have; DtypeError.
  virtual std::unique_ptr<Work> start_all_reduce(const AllReduce& what) = 0;
  // In place: every rank gets the sum over ranks in core/tree.h's order, the same bits on each.
  virtual void all_reduce_sum(std::span<float> values) = 0;
  // In place, exact.
  virtual void all_reduce_sum(std::span<int64_t> values) = 0;

  // From now on the ranks are in this part, until another call; null: in none. All ranks must call
  // it at the same place. Borrowed.
  void enter(const SlowPart* part) { context_.slow_part = part; }

  // From now on; null: none. Borrowed. Each rank may decide by itself.
  void warn_of_stalls(const StallWarning* warning) { context_.warning = warning; }
  void record_in(FlightRecorder* recorder) { context_.recorder = recorder; }
  FlightRecorder* recorder() const { return context_.recorder; }

  // Since the beginning.
  const Traffic& traffic() const { return traffic_; }

 protected:
  Traffic traffic_;
  CallContext context_;
};

// Ranks whose GPUs reach each other, beside the communicator of the same ranks. Calls are in the
// compute stream's order, and the host does not wait. Thread safety: none.
class DevicePeers {
 public:
  DevicePeers() = default;
  DevicePeers(const DevicePeers&) = delete;
  DevicePeers& operator=(const DevicePeers&) = delete;
  virtual ~DevicePeers() = default;

  // A collective call: all[i] = the ranks' mine[i], one behind the other; rank r's rows begin at
  // first_rows[r] and end at first_rows[r + 1]. Shapes: mine[i] (its rows, columns) f32; all[i]
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
