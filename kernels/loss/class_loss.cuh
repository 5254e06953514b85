// Code that the classification losses share. One block computes an image, with one, four or eight
// warps depending on the number of classes; its threads take packs of 16 bytes of the logits. Which
// thread takes which logits depends only on the number of classes, not on the address.
#pragma once

#include "kernels/image/mix_images.h"
#include "kernels/loss/softmax_cross_entropy.h"
#include "kernels/support/cuda/images.cuh"
#include "kernels/support/cuda/numeric.cuh"
#include "kernels/support/cuda/shards.cuh"

namespace lockstep::kernels::cuda {
namespace {

constexpr int kLossThreads = 256;
constexpr int kLeafThreads = 128;

// The two labels of an image and the weight of the first.
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

// Loads logits [c, c + n); -infinity beyond the last. `packed`: n divides the classes and rows are
// aligned.
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

template <int n, class T>
__device__ void store_gradients(
    T* row, int64_t classes, int64_t c, bool packed, const Pack<T, n>& gradients) {
  if (packed) {
    store_pack(row + c, gradients);
  } else {
#pragma unroll
    for (int i = 0; i < n; ++i) {
      if (c + i < classes) row[c + i] = gradients[i];
    }
  }
}

// The inputs of both passes.
template <class T>
struct LossInput {
  const T* logits;
  const int32_t* labels;
  const float* mix;  // may be null
  int64_t classes;
  bool packed;
  float smoothing;
};

// One block sums a shard: all threads fetch losses, and the first one adds them in order.
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

void launch_loss_leaves(Stream& stream,
                        const char* op,
                        const Shards& shards,
                        int64_t divide_by,
                        const Tensor& losses,
                        Tensor& leaves) {
  lockstep::cuda::launch(stream,
                         op,
                         {static_cast<unsigned>(shards.local()), kLeafThreads},
                         loss_leaves_kernel,
                         shard_table(shards),
                         shards.step_images * divide_by,
                         losses.data<float>(),
                         leaves.data<float>());
}

template <class T>
LossInput<T> loss_input(const Tensor& logits,
                        const Tensor& labels,
                        const ClassLossParams& params,
                        std::initializer_list<const void*> rows) {
  const int64_t classes = logits.shape()[1];
  return {.logits = elements<T>(logits),
          .labels = labels.data<int32_t>(),
          .mix = elements<float>(params.mix),
          .classes = classes,
          .packed = classes % (16 / sizeof(T)) == 0 && aligned(rows),
          .smoothing = params.label_smoothing};
}

lockstep::cuda::LaunchShape image_blocks(const char* op, const Tensor& logits) {
  const int64_t classes = logits.shape()[1];
  return {static_cast<unsigned>(to_int(op, logits.shape()[0])),
          classes <= 256    ? 32U
          : classes <= 4096 ? 128U
                            : unsigned{kLossThreads}};
}

}  // namespace
}  // namespace lockstep::kernels::cuda
