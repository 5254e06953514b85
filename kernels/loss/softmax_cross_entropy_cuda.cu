// Threads as in class_loss.cuh. Each thread keeps a running maximum and sum of exponentials, so
// that the forward pass reads a row once for both loss and rank. The backward pass reads it a
// second time, from L1, to write the gradients. Traffic: the logits in the forward pass, logits and
// gradients in the backward pass. Bound: latency, since a batch has few logits.
#include "kernels/loss/class_loss.cuh"
#include "kernels/support/cuda/reduce.cuh"

namespace lockstep::kernels::cuda {
namespace {

// sum = sum of exp(x - max), where max is the greatest x that is not NaN; NaN if an x is NaN.
struct Exponentials {
  float max, sum;

  __device__ static Exponentials of_nothing() { return {-INFINITY, 0}; }
  // exp(x - max), also when all x are -infinity.
  __device__ static float term(float x, float max) {
    return expf(x - (max == -INFINITY ? 0 : max));
  }

  template <int n>
  __device__ void add(const float (&x)[n]) {
    float greatest = max;
#pragma unroll
    for (int i = 0; i < n; ++i) greatest = fmaxf(greatest, x[i]);
    sum *= term(max, greatest);
#pragma unroll
    for (int i = 0; i < n; ++i) sum += term(x[i], greatest);
    max = greatest;
  }
  __device__ static Exponentials merge(const Exponentials& a, const Exponentials& b) {
    const float max = fmaxf(a.max, b.max);
    return {max, a.sum * term(a.max, max) + b.sum * term(b.max, max)};
  }
};

// The sums over a row that the forward pass needs.
struct RowSums {
  double total;  // of the logits
  Exponentials exponentials;
  int above;  // classes that rank before the label
  int nans;

  __device__ static RowSums of_nothing() { return {0, Exponentials::of_nothing(), 0, 0}; }
  __device__ static RowSums merge(const RowSums& a, const RowSums& b) {
    return {a.total + b.total,
            Exponentials::merge(a.exponentials, b.exponentials),
            a.above + b.above,
            a.nans + b.nans};
  }
};

template <class T>
__global__ void __launch_bounds__(kLossThreads) softmax_forward_kernel(const ShardTable shards,
                                                                       const LossInput<T> in,
                                                                       float* losses,
                                                                       int32_t* target_rank) {
  const int64_t classes = in.classes;
  const float smoothing = in.smoothing;
  constexpr int n = 16 / sizeof(T);
  __shared__ RowSums scratch[kMaxWarps];
  const T* row = in.logits + int64_t{blockIdx.x} * classes;
  const Target target = Target::of(shards, in.labels, in.mix, blockIdx.x);
  const bool known = target.known(classes);
  const int32_t label = target.heavier();
  const float of_label = known ? to_float(row[label]) : NAN;
  RowSums sums = RowSums::of_nothing();
  for (int64_t c = int64_t{threadIdx.x} * n; c < classes; c += int64_t{blockDim.x} * n) {
    float x[n];
    load_logits(row, classes, c, in.packed, x);
    sums.exponentials.add(x);
#pragma unroll
    for (int i = 0; i < n; ++i) {
      sums.above += x[i] > of_label || (x[i] == of_label && c + i < label);
      sums.nans += isnan(x[i]);
      if (smoothing != 0 && c + i < classes) sums.total += x[i];
    }
  }
  sums = block_reduce(sums, scratch, RowSums::merge);
  if (threadIdx.x != 0) return;
  const double max = sums.exponentials.max;
  const double log_sum = log(static_cast<double>(sums.exponentials.sum));
  double loss = max - of_label + log_sum;
  const float lighter = target.weight < 0.5F ? target.weight : 1 - target.weight;
  if (known && lighter != 0) {  // avoids 0 * inf for a class without weight
    const float other = to_float(row[target.weight < 0.5F ? target.label : target.other]);
    loss = (1 - static_cast<double>(lighter)) * loss + lighter * (max - other + log_sum);
  }
  if (smoothing != 0) {  // avoids 0 * inf for the other classes
    const double mean = max - sums.total / static_cast<double>(classes) + log_sum;
    loss = (1 - static_cast<double>(smoothing)) * loss + smoothing * mean;
  }
  losses[blockIdx.x] = static_cast<float>(loss);
  target_rank[blockIdx.x] = sums.nans > 0 || !known ? static_cast<int32_t>(classes) : sums.above;
}

template <class T>
__global__ void __launch_bounds__(kLossThreads) softmax_backward_kernel(const ShardTable shards,
                                                                        const LossInput<T> in,
                                                                        int64_t divisor,
                                                                        const float* grad_loss,
                                                                        T* grad_logits) {
  const int64_t classes = in.classes;
  const float smoothing = in.smoothing;
  constexpr int n = 16 / sizeof(T);
  __shared__ Exponentials scratch[kMaxWarps];
  const int64_t first = int64_t{blockIdx.x} * classes;
  const int64_t stride = int64_t{blockDim.x} * n;
  Exponentials sums = Exponentials::of_nothing();
  float x[n];
  for (int64_t c = int64_t{threadIdx.x} * n; c < classes; c += stride) {
    load_logits(in.logits + first, classes, c, in.packed, x);
    sums.add(x);
  }
  sums = block_reduce(sums, scratch, Exponentials::merge);

  const Target of_image = Target::of(shards, in.labels, in.mix, blockIdx.x);
  const bool known = of_image.known(classes);
  const float own = (1 - smoothing) * of_image.weight;
  const float others = (1 - smoothing) * (1 - of_image.weight);
  const float off_target =
      static_cast<float>(static_cast<double>(smoothing) / static_cast<double>(classes));
  const double grad = grad_loss[shard_of(shards, blockIdx.x)];
  const float scale = known ? static_cast<float>(grad / static_cast<double>(divisor)) : NAN;
  for (int64_t c = int64_t{threadIdx.x} * n; c < classes; c += stride) {
    load_logits(in.logits + first, classes, c, in.packed, x);
    Pack<T, n> result;
#pragma unroll
    for (int i = 0; i < n; ++i) {
      const float softmax = expf(x[i] - sums.max) / sums.sum;
      const float target =
          off_target + (c + i == of_image.label ? own : 0) + (c + i == of_image.other ? others : 0);
      result[i] = from_float<T>((softmax - target) * scale);
    }
    store_gradients(grad_logits + first, classes, c, in.packed, result);
  }
}

}  // namespace

void softmax_cross_entropy_forward(Stream& stream,
                                   const Shards& shards,
                                   const SoftmaxCrossEntropyArgs& args,
                                   Tensor& losses,
                                   Tensor& target_rank,
                                   Tensor& loss_leaves) {
  constexpr const char* kOp = "softmax_cross_entropy_forward";
  const Tensor& logits = args.logits;
  with_float_type(logits.dtype(), [&]<class T>() {
    lockstep::cuda::launch(stream,
                           kOp,
                           image_blocks(kOp, logits),
                           softmax_forward_kernel<T>,
                           shard_table(shards),
                           loss_input<T>(logits, args.labels, args.params, {logits.bytes()}),
                           losses.data<float>(),
                           target_rank.data<int32_t>());
  });
  launch_loss_leaves(stream, kOp, shards, args.params.divide_by, losses, loss_leaves);
}

void softmax_cross_entropy_backward(Stream& stream,
                                    const Shards& shards,
                                    const SoftmaxCrossEntropyArgs& args,
                                    const Tensor& grad_loss,
                                    Tensor& grad_logits) {
  constexpr const char* kOp = "softmax_cross_entropy_backward";
  const Tensor& logits = args.logits;
  with_float_type(logits.dtype(), [&]<class T>() {
    lockstep::cuda::launch(
        stream,
        kOp,
        image_blocks(kOp, logits),
        softmax_backward_kernel<T>,
        shard_table(shards),
        loss_input<T>(logits, args.labels, args.params, {logits.bytes(), grad_logits.bytes()}),
        shards.step_images * args.params.divide_by,
        grad_loss.data<float>(),
        elements<T>(grad_logits));
  });
}

}  // namespace lockstep::kernels::cuda
