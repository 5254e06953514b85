// Sums gradients over micro-steps, shards and ranks, in buckets, during backward().
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/bucket.h"
#include "comm/device_exchange.h"
#include "comm/exchange_clock.h"
#include "comm/tree_counter.h"
#include "core/autograd.h"
#include "core/communicator.h"
#include "core/stream.h"
#include "core/tensor.h"

#pragma GCC visibility push(default)
namespace lockstep::comm {

// Exchanges a bucket in place of Communicator::start_all_reduce; null when it is done already.
using BucketExchange = std::function<std::unique_ptr<Work>(Communicator& peers, Bucket& bucket)>;

struct ReducerOptions {
  BucketCaps caps{};
  Algorithm algorithm = Algorithm::kTree;
  bool overlap = true;       // exchange during backward(); otherwise all of it in finish()
  Dtype wire = Dtype::kF32;  // leaves and sums are rounded to it
  float predivide = 1;       // gradients are scaled by its inverse before the exchange, by it after
  int64_t micro_steps = 1;   // backward() calls per step
  bool zero_unused = false;  // a parameter that got no gradient counts as zero; otherwise an error
  BucketExchange exchange{};       // empty: Communicator::start_all_reduce, on CUDA on_device
  MakeDeviceExchange on_device{};  // empty: by the host, comm/staged_exchange.h
  // Asked on each rank when a step's last bucket starts; any_said_yes() tells the same to all. On
  // the CPU alone, and where the ranks exchange. Empty: nothing is asked.
  std::function<bool()> ask{};
  Timeline* timeline = nullptr;  // outlives the reducer; null: times are not recorded
};

// Each gradient is summed over micro-steps and over this rank's shards as soon as backward() has
// finished it; when a bucket is full and those before it are on their way, its sum over ranks
// starts. All sums follow core/tree.h: when the ranks' shards are subtrees, the result does not
// depend on their number.
// Owns: the buckets, whose memory the parameters' gradients share after finish(), and during
// backward() too where one shard in one micro-step is all there is to add; and the parameters'
// on_grad_ready hooks. Parameters that require no gradient are left out.
// Thread safety: none.
class GradientReducer {
 public:
  // A collective call. `names` are for errors, one per parameter. The communicator and the stream
  // must outlive this. Errors: DtypeError unless parameters are f32.
  GradientReducer(Communicator& peers,
                  Stream& stream,
                  std::vector<Var> parameters,
                  std::vector<std::string> names,
                  ReducerOptions options = {});
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;
  ~GradientReducer();

  // Call it between two backward() calls of one step. Errors: UsageError as in finish().
  void next_micro_step();
  // Call it on all ranks after the step's last backward(). Every parameter's grad() becomes the
  // sum, of the parameter's shape, valid until the next backward(). Errors: UsageError naming the
  // parameters that require a gradient and got none, or one that was frozen or unfrozen since;
  // CommError.
  void finish();

  // On CUDA, where gradients travel between GPUs; else null.
  DevicePeers* device_peers() const { return device_ ? device_->peers() : nullptr; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  const ExchangeTimes& times() const { return times_; }
  // Whether ReducerOptions::ask is called in each step.
  bool asks() const { return options_.ask && !buckets_.empty(); }
  // Whether any rank's ReducerOptions::ask returned true in the last step. The answers travel with
  // the gradients and cost no message.
  bool any_said_yes() const { return now_.any_said_yes; }

 private:
  struct Gradient {
    bool required = false;   // when this was made
    bool exchanged = false;  // required, and no earlier parameter is the same
    bool ready = false;      // in this micro-step
    size_t bucket = 0;
    TreeCounter leaves;  // of the micro-steps so far, where there are several
    Tensor wire;         // its place in the bucket, flat
    Tensor sum;          // what grad() becomes
  };
  // A bucket on its way.
  struct Exchange {
    size_t missing = 0;  // gradients that the bucket waits for
    Tensor sums;         // f32; the bucket's own values where they are f32
    std::unique_ptr<Work> work;
  };

  // The progress of the step.
  struct Progress {
    size_t started = 0;  // buckets
    int64_t micro_step = 0;
    int64_t rows = 1;           // local shards
    bool any_said_yes = false;  // of the last step
  };

  void choose_exchanged();
  void place_gradients();
  void on_grad_ready(size_t parameter);
  void add_leaf(size_t parameter, Tensor leaf, bool is_in_place = false);
  void start_full_buckets();
  void start(size_t bucket);
  Tensor answer(const Tensor& values) const;
  void advance();
  void wait(size_t bucket);
  void end_micro_step();
  void check_frozen() const;
  [[noreturn]] void throw_missing(const std::vector<size_t>& missing) const;

  Communicator& peers_;
  Stream& stream_;
  std::vector<Var> parameters_;
  const std::vector<std::string> names_;
  const ReducerOptions options_;
  std::vector<Gradient> gradients_;  // one per parameter
  std::vector<Bucket> buckets_;
  std::unique_ptr<DeviceExchange> device_;  // on CUDA, with peers or a way of its own
  std::vector<Exchange> exchanges_;         // one per bucket
  ExchangeClock clock_;
  ExchangeTimes times_;
  Progress now_;
};

}  // namespace lockstep::comm
#pragma GCC visibility pop
