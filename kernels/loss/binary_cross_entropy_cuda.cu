// Threads as in class_loss.cuh. Classes are independent, so each pass reads a row once. Traffic:
// the logits in the forward pass, logits and gradients in the backward pass. Bound: latency, since
// a batch has few logits.
#include "kernels/loss/binary_targets.h"
#include "kernels/loss/class_loss.cuh"
#include "kernels/support/cuda/reduce.cuh"

namespace lockstep::kernels::cuda {
namespace {

// The sums over a row that the forward pass needs.
struct BinarySums {
  double loss;
  int above;  // classes that rank before the label
  int nans;

  __device__ static BinarySums merge(const BinarySums& a, const BinarySums& b) {
    return {a.loss + b.loss, a.above + b.above, a.nans + b.nans};
  }
};

template <class T>
__global__ void __launch_bounds__(kLossThreads) binary_forward_kernel(const ShardTable shards,
                                                                      const LossInput<T> in,
                                                                      const BinaryTargetRule rule,
                                                                      float* losses,
                                                                      int32_t* target_rank) {
  const int64_t classes = in.classes;
  constexpr int n = 16 / sizeof(T);
  __shared__ BinarySums scratch[kMaxWarps];
  const T* row = in.logits + int64_t{blockIdx.x} * classes;
  const Target target = Target::of(shards, in.labels, in.mix, blockIdx.x);
  const bool known = target.known(classes);
  const int32_t label = target.heavier();
  const float of_label = known ? to_float(row[label]) : NAN;
  const BinaryTargets targets = binary_targets(rule, classes, target.weight);
  BinarySums sums = {0, 0, 0};
  for (int64_t c = int64_t{threadIdx.x} * n; c < classes; c += int64_t{blockDim.x} * n) {
    float x[n];
    load_logits(row, classes, c, in.packed, x);
#pragma unroll
    for (int i = 0; i < n; ++i) {
      sums.above += x[i] > of_label || (x[i] == of_label && c + i < label);
      sums.nans += isnan(x[i]);
      if (c + i >= classes) continue;
      const float t = target_of_class(targets, c + i, target.label, target.other);
      sums.loss += (1 - t) * x[i] - fminf(x[i], 0) + log1pf(expf(-fabsf(x[i])));
    }
  }
  sums = block_reduce(sums, scratch, BinarySums::merge);
  if (threadIdx.x != 0) return;
  const bool is_bad = sums.nans > 0 || !known;
  losses[blockIdx.x] = is_bad ? NAN : static_cast<float>(sums.loss / static_cast<double>(classes));
  target_rank[blockIdx.x] = is_bad ? static_cast<int32_t>(classes) : sums.above;
}

template <class T>
__global__ void __launch_bounds__(kLossThreads) binary_backward_kernel(const ShardTable shards,
                                                                       const LossInput<T> in,
                                                                       const BinaryTargetRule rule,
                                                                       int64_t divisor,
                                                                       const float* grad_loss,
                                                                       T* grad_logits) {
  const int64_t classes = in.classes;
  constexpr int n = 16 / sizeof(T);
  const int64_t first = int64_t{blockIdx.x} * classes;
  const Target target = Target::of(shards, in.labels, in.mix, blockIdx.x);
  const BinaryTargets targets = binary_targets(rule, classes, target.weight);
  const double grad = grad_loss[shard_of(shards, blockIdx.x)];
  const float scale =
      target.known(classes) ? static_cast<float>(grad / static_cast<double>(divisor)) : NAN;
  for (int64_t c = int64_t{threadIdx.x} * n; c < classes; c += int64_t{blockDim.x} * n) {
    float x[n];
    load_logits(in.logits + first, classes, c, in.packed, x);
    Pack<T, n> result;
#pragma unroll
    for (int i = 0; i < n; ++i) {
      const float sigmoid = 1 / (1 + expf(-x[i]));
      const float t = target_of_class(targets, c + i, target.label, target.other);
      result[i] = from_float<T>((sigmoid - t) * scale);
    }
    store_gradients(grad_logits + first, classes, c, in.packed, result);
  }
}

}  // namespace

void binary_cross_entropy_forward(Stream& stream,
                                  const Shards& shards,
                                  const BinaryCrossEntropyArgs& args,
                                  Tensor& losses,
                                  Tensor& target_rank,
                                  Tensor& loss_leaves) {
  constexpr const char* kOp = "binary_cross_entropy_forward";
  const Tensor& logits = args.logits;
  with_float_type(logits.dtype(), [&]<class T>() {
    lockstep::cuda::launch(stream,
                           kOp,
                           image_blocks(kOp, logits),
                           binary_forward_kernel<T>,
                           shard_table(shards),
                           loss_input<T>(logits, args.labels, args.params, {logits.bytes()}),
                           target_rule_of(args),
                           losses.data<float>(),
                           target_rank.data<int32_t>());
  });
  launch_loss_leaves(stream, kOp, shards, args.params.divide_by, losses, loss_leaves);
}

void binary_cross_entropy_backward(Stream& stream,
                                   const Shards& shards,
                                   const BinaryCrossEntropyArgs& args,
                                   const Tensor& grad_loss,
                                   Tensor& grad_logits) {
  constexpr const char* kOp = "binary_cross_entropy_backward";
  const Tensor& logits = args.logits;
  with_float_type(logits.dtype(), [&]<class T>() {
    lockstep::cuda::launch(
        stream,
        kOp,
        image_blocks(kOp, logits),
        binary_backward_kernel<T>,
        shard_table(shards),
        loss_input<T>(logits, args.labels, args.params, {logits.bytes(), grad_logits.bytes()}),
        target_rule_of(args),
        shards.step_images * args.params.divide_by * logits.shape()[1],
        grad_loss.data<float>(),
        elements<T>(grad_logits));
  });
}

}  // namespace lockstep::kernels::cuda
