// A block an image, of one, four or eight warps by the number of classes. Each thread takes packs
// of 16 bytes of the logits and keeps maximum and sum of exponentials as it goes, so that the
// forward pass reads a row once, loss and rank together; the backward pass reads it again to write
// the gradients, from the L1 that it has just come through. Which thread takes which logits depends
// on the number of classes alone, never on the address. Traffic: forward the logits, backward
// logits and gradients. Bound: latency; the logits of a batch are few.
#include "kernels/image/mix_images.h"
#include "kernels/loss/softmax_cross_entropy.h"
#include "kernels/support/cuda/images.cuh"
#include "kernels/support/cuda/numeric.cuh"
#include "kernels/support/cuda/reduce.cuh"
#include "kernels/support/cuda/shards.cuh"

namespace lockstep::kernels::cuda {
namespace {

constexpr int kSoftmaxThreads = 256;
constexpr int kLeafThreads = 128;

// sum = sum of exp(x - max), where max is the greatest x that is no NaN; NaN when an x is.
struct Exponentials {
  float max, sum;

  __device__ static Exponentials of_nothing() { return {-INFINITY, 0}; }
  // exp(x - max) over x that may all be -infinity.
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

// What the forward pass wants to know of a row.
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

// The labels of an image, and how much of it is the first one's.
struct Target {
  int32_t label, other;
  float weight;

  __device__ static Target of(const ShardTable& shards,
                              const int32_t* labels,
                              const float* mix,
                              int64_t image) {
    if (mix == nullptr) return {labels[image], labels[image], 1};
    const int k = shard_of(shards, image);
    return {labels[image], labels[partner_of(shards.begin[k], shards.begin[k + 1], image)], *mix};
  }
  __device__ bool known(int64_t classes) const {
    return label >= 0 && label < classes && other >= 0 && other < classes;
  }
  __device__ int32_t heavier() const { return weight < 0.5F ? other : label; }
};

// Logits [c, c + n), -infinity beyond the last. `packed`: n divides the classes, rows are aligned.
template <int n, class T>
__device__ void load_logits(const T* row, int64_t classes, int64_t c, bool packed, float (&x)[n]) {
  if (packed) {
    const Pack<T, n> pack = load_pack<n>(row + c);
#pragma unroll
    for (int i = 0; i < n; ++i) x[i] = to_float(pack[i]);
  } else {
#pragma unroll
    for (int i = 0; i < n; ++i) x[i] = c + i < classes ? to_float(row[c + i]) : -INFINITY;
  }
}

// Read by both passes.
template <class T>
struct LossInput {
  const T* logits;
  const int32_t* labels;
  const float* mix;  // may be null
  int64_t classes;
  bool packed;
  float smoothing;
};

template <class T>
__global__ void __launch_bounds__(kSoftmaxThreads) softmax_forward_kernel(const ShardTable shards,
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
  if (known && lighter != 0) {  // else no 0 * inf of a class without weight
    const float other = to_float(row[target.weight < 0.5F ? target.label : target.other]);
    loss = (1 - static_cast<double>(lighter)) * loss + lighter * (max - other + log_sum);
  }
  if (smoothing != 0) {  // else no 0 * inf from the other classes
    const double mean = max - sums.total / static_cast<double>(classes) + log_sum;
    loss = (1 - static_cast<double>(smoothing)) * loss + smoothing * mean;
  }
  losses[blockIdx.x] = static_cast<float>(loss);
  target_rank[blockIdx.x] = sums.nans > 0 || !known ? static_cast<int32_t>(classes) : sums.above;
}

// A block a shard; its first thread adds what all of them fetch.
__global__ void __launch_bounds__(kLeafThreads) loss_leaves_kernel(const ShardTable shards,
                                                                   int64_t divisor,
                                                                   const float* losses,
                                                                   float* leaves) {
  __shared__ float fetched[kLeafThreads];
  const int64_t begin = shards.begin[blockIdx.x];
  const int64_t end = shards.begin[blockIdx.x + 1];
  double sum = 0;
  for (int64_t first = begin; first < end; first += kLeafThreads) {
    const int count = static_cast<int>(min(end - first, int64_t{kLeafThreads}));
    if (static_cast<int>(threadIdx.x) < count) fetched[threadIdx.x] = losses[first + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int i = 0; i < count; ++i) sum += fetched[i];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    leaves[blockIdx.x] = begin == end ? 0 : static_cast<float>(sum / static_cast<double>(divisor));
  }
}

template <class T>
__global__ void __launch_bounds__(kSoftmaxThreads) softmax_backward_kernel(const ShardTable shards,
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
    T* to = grad_logits + first + c;
    if (in.packed) {
      store_pack(to, result);
    } else {
#pragma unroll
      for (int i = 0; i < n; ++i) {
        if (c + i < classes) to[i] = result[i];
      }
    }
  }
}

unsigned threads_for(int64_t classes) {
  return classes <= 256 ? 32 : classes <= 4096 ? 128 : kSoftmaxThreads;
}

template <class T>
LossInput<T> loss_input(const SoftmaxCrossEntropyArgs& args,
                        std::initializer_list<const void*> rows) {
  const int64_t classes = args.logits.shape()[1];
  return {.logits = elements<T>(args.logits),
          .labels = args.labels.data<int32_t>(),
          .mix = elements<float>(args.params.mix),
          .classes = classes,
          .packed = classes % (16 / sizeof(T)) == 0 && aligned(rows),
          .smoothing = args.params.label_smoothing};
}

lockstep::cuda::LaunchShape image_blocks(const Tensor& logits) {
  const int images = to_int("softmax_cross_entropy", logits.shape()[0]);
  return {static_cast<unsigned>(images), threads_for(logits.shape()[1])};
}

}  // namespace

void softmax_cross_entropy_forward(Stream& stream,
                                   const Shards& shards,
                                   const SoftmaxCrossEntropyArgs& args,
                                   Tensor& losses,
                                   Tensor& target_rank,
                                   Tensor& loss_leaves) {
  with_float_type(args.logits.dtype(), [&]<class T>() {
    lockstep::cuda::launch(stream,
                           "softmax_cross_entropy_forward",
                           image_blocks(args.logits),
                           softmax_forward_kernel<T>,
                           shard_table(shards),
                           loss_input<T>(args, {args.logits.bytes()}),
                           losses.data<float>(),
                           target_rank.data<int32_t>());
  });
  lockstep::cuda::launch(stream,
                         "softmax_cross_entropy_forward",
                         {static_cast<unsigned>(shards.local()), kLeafThreads},
                         loss_leaves_kernel,
                         shard_table(shards),
                         shards.step_images * args.params.divide_by,
                         losses.data<float>(),
                         loss_leaves.data<float>());
}

void softmax_cross_entropy_backward(Stream& stream,
                                    const Shards& shards,
                                    const SoftmaxCrossEntropyArgs& args,
                                    const Tensor& grad_loss,
                                    Tensor& grad_logits) {
  with_float_type(args.logits.dtype(), [&]<class T>() {
    lockstep::cuda::launch(stream,
                           "softmax_cross_entropy_backward",
                           image_blocks(args.logits),
                           softmax_backward_kernel<T>,
                           shard_table(shards),
                           loss_input<T>(args, {args.logits.bytes(), grad_logits.bytes()}),
                           shards.step_images * args.params.divide_by,
                           grad_loss.data<float>(),
                           elements<T>(grad_logits));
  });
}

}  // namespace lockstep::kernels::cuda
