// The forward pass and the gradient of the input use the same gathering kernel: each result adds
// its products in row-major order of the taps, by fused multiply-add. A warp takes up to 8 packs of
// 16 bytes of channels by 4 slots. A thread takes two or four results of a row, which are a stride
// apart in the backward pass, so that they use the same taps and share reads of the filter, which
// is f32 in shared memory. Traffic: source and result once each; neighboring taps come from L1.
// Bound: DRAM, closely followed by instructions: 225 per pack of eight channels for 3x3.
#include "kernels/support/cuda/images.cuh"
#include "kernels/support/cuda/numeric.cuh"
#include "kernels/conv/depthwise_conv2d.h"

namespace lockstep::kernels::cuda {
namespace {

constexpr int kGatherThreads = 256;
constexpr int kGatherBlocksPerSm = 4;       // at least: 32 warps
constexpr int64_t kGatherMaxBlocks = 1024;  // blocks loop over more work
constexpr size_t kSharedBytes = size_t{48} << 10;

// The taps of one result along an axis: tap, tap + tap_step, ... of the filter, at positions at, at
// + at_step, ... of the source, which may be outside of it.
struct Walk {
  int tap, tap_step, at, at_step;
};

struct GatherAxis {
  int source, taps, result, stride, pad;
  Divider by_stride;

  template <bool kForward>
  __device__ __forceinline__ Walk walk(int i) const {
    if (kForward) return {0, 1, i * stride - pad, 1};
    const auto reach = static_cast<unsigned>(i + pad);
    const unsigned at = by_stride.quotient(reach);
    const auto tap = static_cast<int>(by_stride.remainder(reach, at));
    return {tap, stride, static_cast<int>(at), -1};
  }
};

// Results that a thread computes at once, as many as its registers hold.
template <int n>
constexpr int kResults = n >= 4 ? 2 : 4;

struct GatherPlan {
  GatherAxis rows, columns;
  int channels, log2_lanes;
  unsigned groups;  // of kResults<n> results, in all images
  Divider by_groups_of_row, by_rows;
};

// Loads [tap][channel of the tile] = weight[channel][tap]. All threads of the block must call it.
template <class T>
__device__ void load_filters(
    const T* weight, int taps, int channels, int first, int width, float* filters) {
  const int count = min(width, channels - first) * taps;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kGatherThreads) {
    const int channel = i / taps;
    const int tap = i - channel * taps;
    filters[tap * width + channel] = to_float(weight[int64_t{first} * taps + i]);
  }
  __syncthreads();
}

// A thread's results: neighbors in a row, the first at (y, x); in the backward pass they are a
// stride apart.
struct Group {
  int64_t row, image;  // row: counted over images
  int y, x;
};

template <int n, bool kForward>
__device__ __forceinline__ Group group_of(const GatherPlan& plan, unsigned i) {
  const unsigned row = plan.by_groups_of_row.quotient(i);
  const unsigned place = plan.by_groups_of_row.remainder(i, row);
  const unsigned image = plan.by_rows.quotient(row);
  const auto y = static_cast<int>(plan.by_rows.remainder(row, image));
  if (kForward) return {row, image, y, static_cast<int>(place) * kResults<n>};
  const Divider& by_stride = plan.columns.by_stride;
  const unsigned stretch = by_stride.quotient(place);  // holds a group for each residue
  const auto residue = static_cast<int>(by_stride.remainder(place, stretch));
  return {row, image, y, static_cast<int>(stretch) * kResults<n> * plan.columns.stride + residue};
}

template <class T, int n, bool kForward>
__global__ void __launch_bounds__(kGatherThreads, kGatherBlocksPerSm) gather_kernel(
    const __grid_constant__ GatherPlan plan, const T* source, const T* weight, T* result) {
  LS_DYNAMIC_SHARED(float, filters);
  const GatherAxis& rows = plan.rows;
  const GatherAxis& columns = plan.columns;
  const int width = n << plan.log2_lanes;
  const int tile = static_cast<int>(blockIdx.x) * width;
  load_filters(weight, rows.taps * columns.taps, plan.channels, tile, width, filters);

  const int lane = static_cast<int>(threadIdx.x) & ((1 << plan.log2_lanes) - 1);
  const int channels = plan.channels;
  const int c = tile + lane * n;
  if (c >= channels) return;
  const unsigned slots = kGatherThreads >> plan.log2_lanes;
  const unsigned slot = threadIdx.x >> plan.log2_lanes;
  // The distances of a group's neighbors in the result and in the source.
  const int x_step = kForward ? 1 : columns.stride;
  const int source_x_step = kForward ? columns.stride : 1;
  for (unsigned i = blockIdx.y * slots + slot; i < plan.groups; i += gridDim.y * slots) {
    const Group group = group_of<n, kForward>(plan, i);
    float sums[kResults<n>][n] = {};
    const Walk down = rows.template walk<kForward>(group.y);
    const Walk along = columns.template walk<kForward>(group.x);
    for (int r = down.tap, sy = down.at; r < rows.taps; r += down.tap_step, sy += down.at_step) {
      if (sy < 0 || sy >= rows.source) continue;
      const int64_t line = (group.image * rows.source + sy) * columns.source * channels;
      const float* filter = filters + r * columns.taps * width + lane * n;
      for (int s = along.tap, sx = along.at; s < columns.taps;
           s += along.tap_step, sx += along.at_step) {
        const Pack<float, n> w = load_pack<n>(filter + s * width);
#pragma unroll
        for (int j = 0; j < kResults<n>; ++j) {
          const int x = sx + j * source_x_step;
          if (x < 0 || x >= columns.source) continue;
          const Pack<T, n> values = load_pack<n>(source + line + (x * channels + c));
#pragma unroll
          for (int k = 0; k < n; ++k) sums[j][k] = __fmaf_rn(to_float(values[k]), w[k], sums[j][k]);
        }
      }
    }
    const int64_t line = group.row * columns.result * channels;
#pragma unroll
    for (int j = 0; j < kResults<n>; ++j) {
      const int x = group.x + j * x_step;
      if (x >= columns.result) continue;
      Pack<T, n> rounded;
#pragma unroll
      for (int k = 0; k < n; ++k) rounded[k] = from_float<T>(sums[j][k]);
      store_pack(result + line + (x * channels + c), rounded);
    }
  }
}

// The binary logarithm of the packs per tile of channels, chosen so that its filters fit in shared
// memory.
int log2_lanes_for(int64_t packs, int n, int64_t taps) {
  const int most = n == 1 ? 5 : 3;
  int log2 = 0;
  while (log2 < most && int64_t{1} << log2 < packs &&
         static_cast<size_t>(taps * n * 4) << (log2 + 1) <= kSharedBytes) {
    ++log2;
  }
  return log2;
}

template <bool kForward>
void gather(Stream& stream,
            const char* op,
            const Tensor& source,
            const Tensor& weight,
            const Conv2dParams& params,
            Tensor& result) {
  if (result.numel() == 0) return;
  const Shape& from = source.shape();
  const Shape& to = result.shape();
  const int64_t channels = to[1];
  const int64_t taps = weight.shape().stride0();
  const auto axis = [&](int at, int stride, int pad) {
    return GatherAxis{static_cast<int>(from[at]),
                      static_cast<int>(weight.shape()[at]),
                      static_cast<int>(to[at]),
                      stride,
                      pad,
                      Divider(stride)};
  };
  to_int(op, std::max(from.stride0(), to.stride0()));  // places in an image are 32-bit
  with_float_type(result.dtype(), [&]<class T>() {
    const T* values = elements<T>(source);
    T* results = elements<T>(result);
    with_channel_pack<T>(channels, {values, results}, [&]<int n>() {
      // In the backward pass a group's results are a stride apart, so there are groups for each
      // residue.
      const int64_t residues = kForward ? 1 : params.stride_w;
      const int64_t groups_of_row =
          residues * lockstep::cuda::blocks_for(to[3], residues * kResults<n>);
      const int64_t groups = groups_of_row * to[2] * to[0];
      const int log2_lanes = log2_lanes_for(channels / n, n, taps);
      const GatherPlan plan{axis(2, params.stride_h, params.pad_h),
                            axis(3, params.stride_w, params.pad_w),
                            static_cast<int>(channels),
                            log2_lanes,
                            static_cast<unsigned>(to_int(op, groups)),
                            Divider(groups_of_row),
                            Divider(to[2])};
      const int64_t tiles = lockstep::cuda::blocks_for(channels / n, int64_t{1} << log2_lanes);
      const int64_t chunks = lockstep::cuda::blocks_for(groups, kGatherThreads >> log2_lanes);
      const int64_t rows = std::min(chunks, std::max<int64_t>(1, kGatherMaxBlocks / tiles));
      lockstep::cuda::launch(stream,
                             op,
                             {dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(rows)),
                              kGatherThreads,
                              static_cast<size_t>(taps * n * 4) << log2_lanes},
                             gather_kernel<T, n, kForward>,
                             plan,
                             values,
                             elements<T>(weight),
                             results);
    });
  });
}

}  // namespace

void depthwise_conv2d_forward(Stream& stream,
                              const Shards&,
                              const Tensor& in,
                              const Tensor& weight,
                              const Conv2dParams& params,
                              Tensor& out) {
  gather<true>(stream, "depthwise_conv2d_forward", in, weight, params, out);
}

void depthwise_conv2d_backward_data(Stream& stream,
                                    const Shards&,
                                    const Tensor& grad_out,
                                    const Tensor& weight,
                                    const Conv2dParams& params,
                                    Tensor& grad_in) {
  gather<false>(stream, "depthwise_conv2d_backward_data", grad_out, weight, params, grad_in);
}

}  // namespace lockstep::kernels::cuda
