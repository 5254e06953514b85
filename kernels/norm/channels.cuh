// Loops over channels-last tensors with per-channel constants or sums: each thread takes the
// channels of one pack and iterates over pixels of one shard.
#pragma once

#include <algorithm>
#include <cstring>

#include "core/cuda/launch.h"
#include "kernels/support/cuda/numeric.cuh"
#include "kernels/support/cuda/pack.cuh"
#include "kernels/support/cuda/shards.cuh"

namespace lockstep::kernels::cuda {
namespace {

constexpr int kChannelThreads = 512;
constexpr int kTileChannels = 64;  // at most; a row of 64 16-bit channels is a cache line

// How blocks of kChannelThreads divide each shard: channels into tiles, pixels into slices. A slice
// takes every slices()-th run of `rows` pixels, so that all blocks advance through memory together.
// The pixels that a thread takes depend only on the shard's shape and dtype.
struct ChannelPlan {
  ShardTable shards;  // begins are in images
  int64_t first_shard = 0;
  int64_t shards_per_group = 1;
  int64_t image_pixels = 1;
  int channels = 1;
  int vector = 1;      // channels per pack
  int width = 1;       // packs per tile
  int rows = 1;        // pixels that a block takes at once
  int max_slices = 1;  // per shard

  __host__ __device__ int64_t pixels(int shard) const {
    return (shards.begin[shard + 1] - shards.begin[shard]) * image_pixels;
  }
  // The number of slices: 0 for an empty shard, else so many that a thread has at least a few
  // pixels, if the shard has that many.
  __host__ __device__ int slices(int shard) const {
    constexpr int kPixelsPerThread = 4;
    const int64_t wanted =
        (pixels(shard) + rows * kPixelsPerThread - 1) / (rows * kPixelsPerThread);
    return static_cast<int>(wanted < max_slices ? wanted : max_slices);
  }
  // The number of a block's rows that have a pixel.
  __device__ int rows_used(int shard, unsigned slice) const {
    const int64_t left = pixels(shard) - int64_t{slice} * rows;
    return static_cast<int>(left < rows ? left : rows);
  }
  // The shard's row among the local groups.
  __host__ __device__ int64_t group(int shard) const {
    return (first_shard + shard) / shards_per_group - first_shard / shards_per_group;
  }

  // At least one, since an empty shard has results, too.
  int most_slices() const {
    int most = 1;
    for (int shard = 0; shard < shards.count; ++shard) most = std::max(most, slices(shard));
    return most;
  }
  // The grid of a kernel whose packs have `n` channels: (tiles, slices, shards).
  dim3 grid(int n) const {
    return {lockstep::cuda::blocks_for(channels, width * n),
            static_cast<unsigned>(most_slices()),
            static_cast<unsigned>(shards.count)};
  }
};

inline ChannelPlan channel_plan(const Shards& shards, const Tensor& in) {
  // Blocks per shard: 2 for each of an H100's 132 SMs, so that all run at once. Few large blocks
  // leave few partial sums to add up.
  constexpr int64_t kBlocks = 264;
  const Shape& shape = in.shape();
  ChannelPlan plan{.shards = shard_table(shards),
                   .first_shard = shards.first,
                   .shards_per_group = shards.per_group(),
                   .image_pixels = shape.rank() == 4 ? shape[2] * shape[3] : 1,
                   .channels = static_cast<int>(shape[1])};
  const auto vector = static_cast<int64_t>(16 / size_of(in.dtype()));
  plan.vector = static_cast<int>(shape[1] % vector == 0 ? vector : 1);
  const int64_t packs = shape[1] / plan.vector;
  const int64_t most_packs = kTileChannels / plan.vector;
  const int64_t tiles = (packs + most_packs - 1) / most_packs;
  plan.width = static_cast<int>((packs + tiles - 1) / tiles);
  plan.rows = kChannelThreads / plan.width;
  plan.max_slices = static_cast<int>(std::max<int64_t>(1, kBlocks / tiles));
  return plan;
}

// Calls body.operator()<T, n>() with the element type and the channels per pack: 16 bytes if that
// divides the channels and the pointers are aligned, else 1. Threads sum the same pixels either
// way.
template <class Body>
void with_channel_packs(const ChannelPlan& plan,
                        Dtype dtype,
                        std::initializer_list<const void*> pointers,
                        Body&& body) {
  const bool packed = plan.vector > 1 && aligned(pointers);
  with_float_type(dtype, [&]<class T>() {
    packed ? body.template operator()<T, 16 / sizeof(T)>() : body.template operator()<T, 1>();
  });
}

// The part of a shard that a thread takes.
struct ChannelShare {
  int shard;
  int column;     // pack within the tile
  int step;       // elements from one of its pixels to the next
  int count;      // pixels; 0 for a thread or block without work
  int64_t first;  // element
};

template <int n>
__device__ __forceinline__ int first_channel(const ChannelPlan& plan, int column) {
  return (static_cast<int>(blockIdx.x) * plan.width + column) * n;
}

// `backwards`: starts at the shard's end, which is still in L2 when the pass follows one that ran
// forward.
template <int n>
__device__ __forceinline__ ChannelShare channel_share(const ChannelPlan& plan,
                                                      bool backwards = false) {
  const int thread = static_cast<int>(threadIdx.x);
  ChannelShare share{};
  share.shard = static_cast<int>(backwards ? gridDim.z - 1 - blockIdx.z : blockIdx.z);
  share.column = thread % plan.width;
  const int row = thread / plan.width;
  const int channel = first_channel<n>(plan, share.column);
  const int64_t pixels = plan.pixels(share.shard);
  const int slices = plan.slices(share.shard);
  const int pixel_step = slices * plan.rows;
  const int64_t start = int64_t{blockIdx.y} * plan.rows + row;
  const bool has_work = static_cast<int>(blockIdx.y) < slices && row < plan.rows &&
                        channel < plan.channels && start < pixels;
  if (!has_work) return share;
  const int64_t pixel =
      plan.shards.begin[share.shard] * plan.image_pixels + (backwards ? pixels - 1 - start : start);
  share.first = pixel * plan.channels + channel;
  share.step = (backwards ? -pixel_step : pixel_step) * plan.channels;
  share.count = static_cast<int>((pixels - 1 - start) / pixel_step + 1);
  return share;
}

// The first channel of a thread of row 0; -1 for other threads, and beyond the last channel.
template <int n>
__device__ __forceinline__ int leading_channel(const ChannelPlan& plan) {
  const int thread = static_cast<int>(threadIdx.x);
  const int channel = first_channel<n>(plan, thread);
  return thread < plan.width && channel < plan.channels ? channel : -1;
}

// Calls body(element, packs) for each of the thread's pixels, with one pack of each input. Loads of
// kAtOnce pixels are in flight together. The body may overwrite the memory of its packs.
template <int n, int kAtOnce, class T, int kInputs, class Body>
__device__ __forceinline__ void for_packs(const ChannelShare& share,
                                          const T* const (&inputs)[kInputs],
                                          Body&& body) {
  int64_t at = share.first;
#pragma unroll 1
  for (int left = share.count; left > 0; left -= kAtOnce) {
    RawPack<T, n> raw[kAtOnce][kInputs];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (i < left) {
#pragma unroll
        for (int j = 0; j < kInputs; ++j) raw[i][j] = load_raw<n>(inputs[j] + at + i * share.step);
      }
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (i < left) {
        Pack<T, n> packs[kInputs];
#pragma unroll
        for (int j = 0; j < kInputs; ++j) packs[j] = raw[i][j].elements();
        body(at + i * share.step, packs);
      }
    }
    at += kAtOnce * share.step;
  }
}

// Constants of a tile's channels, in shared memory. They are read 4 channels (or 1) at a time and
// laid out so that threads of a warp read adjacent values.
template <int n, int kArrays>
struct TileConstants {
  static constexpr int kChannelsPerLoad = n < 4 ? n : 4;
  float values[kArrays][kTileChannels];

  // Calls body(channel, constants) once for each channel of the tile, which must assign the
  // constants. All threads of the block must call it; it ends with a barrier.
  template <class Body>
  __device__ __forceinline__ void fill(const ChannelPlan& plan, Body&& body) {
    const int lane = static_cast<int>(threadIdx.x);
    const int channel = first_channel<n>(plan, 0) + lane;
    if (lane < plan.width * n && channel < plan.channels) {
      const int i = lane % n;
      const int at =
          (i / kChannelsPerLoad * plan.width + lane / n) * kChannelsPerLoad + i % kChannelsPerLoad;
      float constants[kArrays];
      body(channel, constants);
#pragma unroll
      for (int j = 0; j < kArrays; ++j) values[j][at] = constants[j];
    }
    __syncthreads();
  }

  // Calls body(i, constants) for the n channels of a pack.
  template <class Body>
  __device__ __forceinline__ void for_each(const ChannelPlan& plan,
                                           const ChannelShare& share,
                                           Body&& body) const {
#pragma unroll
    for (int first = 0; first < n; first += kChannelsPerLoad) {
      Pack<float, kChannelsPerLoad> packs[kArrays];
#pragma unroll
      for (int j = 0; j < kArrays; ++j) {
        packs[j] = load_pack<kChannelsPerLoad>(values[j] + first * plan.width +
                                               share.column * kChannelsPerLoad);
      }
#pragma unroll
      for (int k = 0; k < kChannelsPerLoad; ++k) {
        float constants[kArrays];
#pragma unroll
        for (int j = 0; j < kArrays; ++j) constants[j] = packs[j][k];
        body(first + k, constants);
      }
    }
  }
};

// Joins the nodes of a block's rows by a fixed tree: row 0, the first `width` threads, gets the
// results. A Node consists only of floats and has join(Node&, const Node&). All threads of the
// block must call it.
template <class Node>
__device__ __forceinline__ void fold_rows(int width, int rows, Node& node) {
  constexpr int kFloats = sizeof(Node) / sizeof(float);
  __shared__ float memory[kFloats][kChannelThreads];
  const int thread = static_cast<int>(threadIdx.x);
  int reach = 1;
  while (reach < rows) reach *= 2;
#pragma unroll 1
  for (reach /= 2; reach > 0; reach /= 2) {
    if (thread >= reach * width && thread < min(2 * reach, rows) * width) {
      float floats[kFloats];
      memcpy(floats, &node, sizeof(node));
#pragma unroll
      for (int i = 0; i < kFloats; ++i) memory[i][thread] = floats[i];
    }
    __syncthreads();
    if (thread < reach * width && thread + reach * width < rows * width) {
      float floats[kFloats];
#pragma unroll
      for (int i = 0; i < kFloats; ++i) floats[i] = memory[i][thread + reach * width];
      Node from;
      memcpy(&from, floats, sizeof(from));
      join(node, from);
    }
  }
}

// Joins node(slice, channel) over the slices of a shard, for a tile's channels, in a fixed order.
// Thread i < width * n gets the result of the tile's channel i. All threads of the block must call
// it.
template <int n, class MakeNode>
__device__ __forceinline__ auto join_slices(const ChannelPlan& plan, int shard, MakeNode&& node) {
  const int lanes = plan.width * n;
  const int rows = kChannelThreads / (plan.width * plan.vector);  // for packs of any size
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / lanes;
  const int channel = first_channel<n>(plan, 0) + thread % lanes;
  const int slices = plan.slices(shard);
  decltype(node(0, 0)) sum{};
  if (row < rows && channel < plan.channels) {
#pragma unroll 4
    for (int k = row; k < slices; k += rows) join(sum, node(k, channel));
  }
  fold_rows(lanes, min(rows, slices), sum);
  return sum;
}

}  // namespace
}  // namespace lockstep::kernels::cuda
