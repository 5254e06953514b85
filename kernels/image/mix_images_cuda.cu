// mix_images: one thread per pack of 16 bytes of an image and of its partner, both of which it
// reads and writes. One row of blocks per image; blocks of a pair's second image exit at once.
// Traffic: each element is read once and written once. Bound: DRAM. swap_boxes: the same, with one
// thread per value of the box.
#include <algorithm>

#include "core/cuda/launch.h"
#include "kernels/image/mix_images.h"
#include "kernels/support/cuda/numeric.cuh"
#include "kernels/support/cuda/pack.cuh"
#include "kernels/support/cuda/shards.cuh"

namespace lockstep::kernels::cuda {
namespace {

constexpr int kMixThreads = 256;
constexpr int64_t kMixRows = 4096;  // of the grid, at most; each loops over images

// body(one, other) for value `first` of each image of this block and of its partner.
template <class T, class Body>
__device__ void for_pairs(
    const ShardTable& shards, int64_t size, int64_t first, T* images, Body&& body) {
  const int64_t rows = shards.begin[shards.count];
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    const int k = shard_of(shards, row);
    const int64_t partner = partner_of(shards.begin[k], shards.begin[k + 1], row);
    if (row < partner) body(images + row * size + first, images + partner * size + first);
  }
}

template <class T, int n>
__global__ void __launch_bounds__(kMixThreads)
    mix_images_kernel(const ShardTable shards, const float* mix, int64_t size, T* images) {
  const int64_t i = (int64_t{blockIdx.x} * kMixThreads + threadIdx.x) * n;
  if (i >= size) return;
  const float weight = *mix;
  for_pairs(shards, size, i, images, [&](T* one, T* other) {
    const Pack<T, n> a = load_pack<n>(one);
    const Pack<T, n> b = load_pack<n>(other);
    Pack<T, n> of_one;
    Pack<T, n> of_other;
#pragma unroll
    for (int j = 0; j < n; ++j) {
      of_one[j] = from_float<T>(mixed(weight, to_float(a[j]), to_float(b[j])));
      of_other[j] = from_float<T>(mixed(weight, to_float(b[j]), to_float(a[j])));
    }
    store_pack(one, of_one);
    store_pack(other, of_other);
  });
}

template <class T, int n>
void launch_mix(Stream& stream, const Shards& shards, const Tensor& mix, Tensor& images) {
  const int64_t size = images.shape().stride0();
  const auto rows = static_cast<unsigned>(std::min(images.shape()[0], kMixRows));
  lockstep::cuda::launch(
      stream,
      "mix_images",
      {dim3(lockstep::cuda::blocks_for(size / n, kMixThreads), rows), kMixThreads},
      mix_images_kernel<T, n>,
      shard_table(shards),
      mix.data<float>(),
      size,
      elements<T>(images));
}

// A box of pixels as ranges of an image's values.
struct BoxOfValues {
  int64_t first, height, columns, row_size;
};

template <class T>
__global__ void __launch_bounds__(kMixThreads)
    swap_boxes_kernel(const ShardTable shards, const BoxOfValues box, int64_t size, T* images) {
  const int64_t i = int64_t{blockIdx.x} * kMixThreads + threadIdx.x;
  if (i >= box.height * box.columns) return;
  const int64_t value = box.first + i / box.columns * box.row_size + i % box.columns;
  for_pairs(shards, size, value, images, [](T* one, T* other) {
    const T kept = *one;
    *one = *other;
    *other = kept;
  });
}

}  // namespace

void mix_images(Stream& stream, const Shards& shards, const Tensor& mix, Tensor& images) {
  if (images.numel() == 0) return;
  with_float_type(images.dtype(), [&]<class T>() {
    constexpr int kPack = 16 / sizeof(T);
    const bool packs = images.shape().stride0() % kPack == 0 && aligned({images.bytes()});
    packs ? launch_mix<T, kPack>(stream, shards, mix, images)
          : launch_mix<T, 1>(stream, shards, mix, images);
  });
}

void swap_boxes(Stream& stream, const Shards& shards, const Region& box, Tensor& images) {
  const Shape& shape = images.shape();
  const int64_t row_size = shape[3] * shape[1];
  const BoxOfValues values = {
      box.top * row_size + box.left * shape[1], box.height, box.width * shape[1], row_size};
  const int64_t count = values.height * values.columns;
  if (images.numel() == 0 || count == 0) return;
  const auto rows = static_cast<unsigned>(std::min(shape[0], kMixRows));
  with_float_type(images.dtype(), [&]<class T>() {
    lockstep::cuda::launch(
        stream,
        "swap_boxes",
        {dim3(lockstep::cuda::blocks_for(count, kMixThreads), rows), kMixThreads},
        swap_boxes_kernel<T>,
        shard_table(shards),
        values,
        shape.stride0(),
        elements<T>(images));
  });
}

}  // namespace lockstep::kernels::cuda
