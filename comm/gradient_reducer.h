// From the gradients of each shard to their sum over all micro-steps, shards and ranks.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/bucket_plan.h"
#include "core/autograd.h"
#include "core/communicator.h"
#include "core/stream.h"
#include "core/tensor.h"

namespace lockstep::comm {

// Gradients that travel together.
struct Bucket {
  int64_t index = 0;
  std::vector<size_t> parameters;  // places in the list that the reducer was made with
  Tensor values;                   // (elements), parameters one after another, zeros between them
  int64_t bytes = 0;               // of the gradients alone
  std::string
      label;  // "bucket 2 (15 tensors, layer4.2.conv3.weight to layer4.1.bn1.bias, 25.1 MiB)"
};

// Exchanges a bucket in place of Communicator::start_all_reduce; null when it is done already.
using BucketExchange = std::function<std::unique_ptr<Work>(Communicator& peers, Bucket& bucket)>;

struct ReducerOptions {
  BucketCaps caps;
  Algorithm algorithm = Algorithm::kTree;
  bool overlap = true;       // exchange during backward(); otherwise all of it in finish()
  Dtype wire = Dtype::kF32;  // leaves and sums are rounded to it
  float predivide = 1;  // gradients are divided by it before the exchange and multiplied after it
  int64_t micro_steps = 1;    // backward() calls a step
  bool zero_unused = false;   // a parameter that got no gradient counts as zero; otherwise an error
  BucketExchange exchange{};  // empty: Communicator::start_all_reduce
};

// When things happened to a bucket in the last step.
struct BucketTimes {
  using Clock = std::chrono::steady_clock;
  Clock::time_point ready;  // its last gradient was there
  Clock::time_point start;  // its exchange was started
  Clock::time_point end;    // its sum was seen to be there
};

// The last step's exchange.
struct ExchangeTimes {
  double exposed_s = 0;  // backward() and finish() were held up by it
  double hidden_s = 0;   // it was under way beside other work of this rank
  std::vector<BucketTimes> buckets;
};

// Each gradient is summed over micro-steps and over this rank's shards as soon as backward() has
// finished it; when a bucket is full and those before it are on their way, its sum over ranks starts.
// All sums follow core/tree.h: when the ranks' shards are subtrees, the result does not depend on
// their number.
// Owns: the buckets, whose memory the parameters' gradients share after finish(), and the parameters'
// on_grad_ready hooks. Parameters that require no gradient are left out. Thread safety: none.
class GradientReducer {
 public:
  // A collective call. `names` are for errors, one a parameter. The communicator and the stream must
  // outlive this. Errors: DtypeError unless parameters are f32.
  GradientReducer(Communicator& peers,
                  Stream& stream,
                  std::vector<Var> parameters,
                  std::vector<std::string> names,
                  ReducerOptions options = {});
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;
  ~GradientReducer();

  // Between two backward() calls of one step. Errors: InternalError as in finish().
  void next_micro_step();
  // After the step's last backward(), on all ranks: every parameter's grad() becomes the sum, of
  // the parameter's shape, valid until the next backward(). Errors: InternalError naming the
  // parameters that require a gradient and got none; CommError.
  void finish();

  const std::vector<Bucket>& buckets() const { return buckets_; }
  const ExchangeTimes& times() const { return times_; }

 private:
  void on_grad_ready(size_t parameter);
  void check_complete() const;

  Communicator& peers_;
  Stream& stream_;
  std::vector<Var> parameters_;
  const std::vector<std::string> names_;
  const ReducerOptions options_;
  std::vector<Bucket> buckets_;
  ExchangeTimes times_;
  Tensor sums_;                // every view starts at a multiple of 256 bytes; zero between them
  std::vector<Tensor> views_;  // flat, one a parameter
  std::vector<bool> ready_;
};

}  // namespace lockstep::comm
