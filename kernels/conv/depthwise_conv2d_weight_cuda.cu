// The gradient of the filters, in two kernels. In the first one a warp sums, for three taps of a
// row and up to 8 packs of 16 bytes of channels by 4 slots, the products of one piece of a shard's
// outputs: first within each slot, then across slots by shuffles. Warps of the other taps are
// adjacent in the block and find the same cache lines in L1. The second kernel adds the pieces of a
// shard, with 16 threads per element, whose sums are added in order. Traffic: in and grad_out once,
// and R*S floats per channel and piece in between. Bound: DRAM. Pieces and slots, and so the order
// of sums, depend only on the shard's shape and the dtype, not on addresses.
#include "kernels/conv/depthwise_conv2d.h"
#include "kernels/support/cuda/images.cuh"
#include "kernels/support/cuda/numeric.cuh"
#include "kernels/support/cuda/shards.cuh"

namespace lockstep::kernels::cuda {
namespace {

constexpr int kPieceThreads = 256;
constexpr int kPieceBlocksPerSm = 4;  // at least: 32 warps
constexpr int kPieceWarps = kPieceThreads / 32;
constexpr int kRun = 3;  // taps per warp, in a row of the filter
constexpr int64_t kMinPixels = 128;
constexpr int64_t kMaxPieces = 1024;
constexpr int kLeafColumns = 32;
constexpr int kLeafRows = 16;

// How the outputs of a shard are cut.
struct Pieces {
  int64_t pixels, count;  // pixels per piece; number of pieces

  __host__ __device__ static Pieces of(int64_t outputs) {
    const int64_t even = (outputs + kMaxPieces - 1) / kMaxPieces;
    const int64_t pixels = even > kMinPixels ? even : kMinPixels;
    return {pixels, (outputs + pixels - 1) / pixels};
  }
};

struct PiecePlan {
  struct Extents {
    int in_h, in_w, out_h, out_w, filter_h, filter_w;
  };
  struct Dividers {
    Divider runs, tiles, runs_of_row, out_h, out_w;
  };
  Extents size;
  Conv2dParams params;
  int channels, log2_lanes, tiles, runs;
  int padding = 0;  // without it ptxas gives some kernels 4 registers more (cuda.resources)
  int64_t pieces;   // of the largest shard
  Dividers by;
};

template <int n, bool kPacked, class T>
__device__ __forceinline__ Pack<T, n> load(const T* from) {
  if constexpr (kPacked) {
    return load_pack<n>(from);
  } else {
    Pack<T, n> pack;
#pragma unroll
    for (int i = 0; i < n; ++i) pack[i] = from[i];
    return pack;
  }
}

// A thread's task: taps [s, s + kRun) of row r, channels [c, c + n), and every slots-th output of a
// piece from `slot` on.
struct Task {
  unsigned piece, slot, slots;
  int r, s;
  int64_t c;
};

// Warps are ordered by taps first, then by tiles of channels, then by pieces.
template <int n>
__device__ __forceinline__ Task task_of(const PiecePlan& plan) {
  const unsigned warp = blockIdx.x * kPieceWarps + threadIdx.x / 32;
  const unsigned tiled = plan.by.runs.quotient(warp);
  const unsigned run = plan.by.runs.remainder(warp, tiled);
  const unsigned piece = plan.by.tiles.quotient(tiled);
  const unsigned tile = plan.by.tiles.remainder(tiled, piece);
  const unsigned r = plan.by.runs_of_row.quotient(run);
  const unsigned thread = threadIdx.x % 32;
  const unsigned slot = thread >> plan.log2_lanes;
  const unsigned lane = thread - (slot << plan.log2_lanes);
  return {piece,
          slot,
          32U >> plan.log2_lanes,
          static_cast<int>(r),
          static_cast<int>(plan.by.runs_of_row.remainder(run, r)) * kRun,
          ((int64_t{tile} << plan.log2_lanes) + lane) * n};
}

// The tensors of all shards, and the shard's first image.
template <class T>
struct Images {
  const T *in, *grad_out;
  int64_t first;
};

// Adds the products of output `p` of a shard to the taps' sums.
template <int n, bool kPacked, class T>
__device__ __forceinline__ void add_products(const PiecePlan& plan,
                                             const Task& task,
                                             int64_t p,
                                             const Images<T>& images,
                                             float (&sums)[kRun][n]) {
  const unsigned row = plan.by.out_w.quotient(static_cast<unsigned>(p));
  const auto ox = static_cast<int>(plan.by.out_w.remainder(static_cast<unsigned>(p), row));
  const unsigned image = plan.by.out_h.quotient(row);
  const auto oy = static_cast<int>(plan.by.out_h.remainder(row, image));
  const int y = oy * plan.params.stride_h - plan.params.pad_h + task.r;
  if (y < 0 || y >= plan.size.in_h) return;
  const int64_t channels = plan.channels;
  const int64_t output = images.first * plan.size.out_h * plan.size.out_w + p;
  const Pack<T, n> grad = load<n, kPacked>(images.grad_out + output * channels + task.c);
  const int64_t line = ((images.first + image) * plan.size.in_h + y) * plan.size.in_w;
#pragma unroll
  for (int j = 0; j < kRun; ++j) {
    const int x = ox * plan.params.stride_w - plan.params.pad_w + task.s + j;
    if (x < 0 || x >= plan.size.in_w || task.s + j >= plan.size.filter_w) continue;
    const Pack<T, n> values = load<n, kPacked>(images.in + (line + x) * channels + task.c);
#pragma unroll
    for (int k = 0; k < n; ++k) {
      sums[j][k] = __fmaf_rn(to_float(grad[k]), to_float(values[k]), sums[j][k]);
    }
  }
}

template <class T, int n, bool kPacked>
__global__ void __launch_bounds__(kPieceThreads, kPieceBlocksPerSm) pieces_kernel(
    const PiecePlan plan, const ShardTable shards, const T* in, const T* grad_out, float* partial) {
  const Task task = task_of<n>(plan);
  const int64_t first = shards.begin[blockIdx.y];
  const int64_t outputs =
      (shards.begin[blockIdx.y + 1] - first) * plan.size.out_h * plan.size.out_w;
  const Pieces pieces = Pieces::of(outputs);
  if (task.piece >= pieces.count) return;  // the same for all lanes of the warp
  const bool some = task.c < plan.channels;
  const int64_t begin = task.piece * pieces.pixels;
  const int64_t end = some ? min(begin + pieces.pixels, outputs) : begin;
  float sums[kRun][n] = {};
  for (int64_t p = begin + task.slot; p < end; p += task.slots) {
    add_products<n, kPacked>(plan, task, p, Images<T>{in, grad_out, first}, sums);
  }
  for (int mask = 16; mask >= 1 << plan.log2_lanes; mask /= 2) {
#pragma unroll
    for (int j = 0; j < kRun; ++j) {
#pragma unroll
      for (int k = 0; k < n; ++k) sums[j][k] += __shfl_xor_sync(0xffffffffU, sums[j][k], mask);
    }
  }
  if (task.slot != 0 || !some) return;
  const int64_t row = (blockIdx.y * plan.pieces + task.piece) * plan.size.filter_h + task.r;
#pragma unroll
  for (int j = 0; j < kRun; ++j) {
    if (task.s + j >= plan.size.filter_w) continue;
    Pack<float, n> pack;
#pragma unroll
    for (int k = 0; k < n; ++k) pack[k] = sums[j][k];
    const int64_t tap = row * plan.size.filter_w + task.s + j;
    store_pack(partial + tap * plan.channels + task.c, pack);
  }
}

struct LeafExtents {
  int64_t outputs_of_image, pieces_of_shard, channels, taps;
};

// One column of threads per element of a leaf. partial is [shard][piece][tap][channel], a leaf
// [channel][tap].
__global__ void __launch_bounds__(kLeafColumns* kLeafRows) filter_leaves_kernel(
    const ShardTable shards, const LeafExtents of, const float* partial, float* leaves) {
  __shared__ float sums[kLeafRows][kLeafColumns];
  const int64_t shard = blockIdx.y;
  const int64_t images = shards.begin[shard + 1] - shards.begin[shard];
  const int64_t pieces = Pieces::of(images * of.outputs_of_image).count;
  const unsigned column = threadIdx.x % kLeafColumns;
  const unsigned row = threadIdx.x / kLeafColumns;
  const int64_t i = int64_t{blockIdx.x} * kLeafColumns + column;
  const int64_t elements = of.taps * of.channels;
  float sum = 0;
  if (i < elements) {
#pragma unroll 8
    for (int64_t piece = row; piece < pieces; piece += kLeafRows) {
      sum += partial[(shard * of.pieces_of_shard + piece) * elements + i];
    }
  }
  sums[row][column] = sum;
  __syncthreads();
  if (row != 0 || i >= elements) return;
  for (int other = 1; other < kLeafRows; ++other) sum += sums[other][column];
  const int64_t tap = i / of.channels;
  leaves[shard * elements + (i - tap * of.channels) * of.taps + tap] = sum;
}

int64_t pieces_of_largest(const Shards& shards, int64_t outputs_of_image) {
  int64_t most = 0;
  for (int64_t k = 0; k < shards.local(); ++k) {
    most = std::max(most, Pieces::of(shards.count(k) * outputs_of_image).count);
  }
  return most;
}

PiecePlan plan_for(const Shards& shards,
                   const Shape& in,
                   const Shape& out,
                   const Shape& weight,
                   const Conv2dParams& params,
                   int n) {
  constexpr const char* kOp = "depthwise_conv2d_backward_weight";
  const int64_t packs = in[1] / n;
  int log2_lanes = 0;
  while (log2_lanes < (n == 1 ? 5 : 3) && int64_t{1} << log2_lanes < packs) ++log2_lanes;
  const int64_t tiles = lockstep::cuda::blocks_for(packs, int64_t{1} << log2_lanes);
  const int64_t runs_of_row = lockstep::cuda::blocks_for(weight[3], kRun);
  to_int(kOp, out.numel() / in[1]);
  return {.size = {.in_h = to_int(kOp, in[2]),
                   .in_w = to_int(kOp, in[3]),
                   .out_h = to_int(kOp, out[2]),
                   .out_w = to_int(kOp, out[3]),
                   .filter_h = static_cast<int>(weight[2]),
                   .filter_w = static_cast<int>(weight[3])},
          .params = params,
          .channels = to_int(kOp, in[1]),
          .log2_lanes = log2_lanes,
          .tiles = static_cast<int>(tiles),
          .runs = static_cast<int>(runs_of_row * weight[2]),
          .pieces = pieces_of_largest(shards, out[2] * out[3]),
          .by = {.runs = Divider(runs_of_row * weight[2]),
                 .tiles = Divider(tiles),
                 .runs_of_row = Divider(runs_of_row),
                 .out_h = Divider(out[2]),
                 .out_w = Divider(out[3])}};
}

}  // namespace

void depthwise_conv2d_backward_weight(Stream& stream,
                                      const Shards& shards,
                                      const Conv2dBackwardWeightArgs& args) {
  constexpr const char* kOp = "depthwise_conv2d_backward_weight";
  const Tensor& in = args.in;
  const Shape& weight = args.weight_shape;
  if (args.grad_weight.numel() == 0) return;
  const auto local = static_cast<unsigned>(shards.local());
  const ShardTable table = shard_table(shards);
  const Shape& out = args.grad_out.shape();
  const int64_t pieces = pieces_of_largest(shards, out[2] * out[3]);
  const size_t bytes = args.grad_weight.nbytes() * static_cast<size_t>(pieces);
  auto* partial = reinterpret_cast<float*>(stream.workspace(bytes, 0).shared);
  with_float_type(in.dtype(), [&]<class T>() {
    const T* from = elements<T>(in);
    const T* grad = elements<T>(args.grad_out);
    // No pointers: the order of a sum must not depend on where tensors lie.
    with_channel_pack<T>(in.shape()[1], {}, [&]<int n>() {
      const PiecePlan plan = plan_for(shards, in.shape(), out, weight, args.params, n);
      const int64_t warps = to_int(kOp, pieces * plan.tiles * plan.runs);
      lockstep::cuda::launch(
          stream,
          kOp,
          {dim3(lockstep::cuda::blocks_for(warps, kPieceWarps), local), kPieceThreads},
          aligned({from, grad}) ? pieces_kernel<T, n, true> : pieces_kernel<T, n, false>,
          plan,
          table,
          from,
          grad,
          partial);
    });
  });
  lockstep::cuda::launch(stream,
                         kOp,
                         {dim3(lockstep::cuda::blocks_for(weight.numel(), kLeafColumns), local),
                          kLeafColumns * kLeafRows},
                         filter_leaves_kernel,
                         table,
                         LeafExtents{out[2] * out[3], pieces, in.shape()[1], weight.stride0()},
                         partial,
                         args.grad_weight.data<float>());
}

}  // namespace lockstep::kernels::cuda
