// normalize_image: one thread per pack of 16 bytes of the result. Traffic per element: 1 byte read,
// a value written. Bound: DRAM, closely followed by two divisions per element. crop_flip_normalize:
// one row of blocks per image. Unless a crop is given, each thread draws the image's crop itself,
// in about a hundred integer instructions, and then takes packs of 16 bytes of the result. Traffic
// per element: 1 byte read (singly, as crops begin at any byte), a value written. Bound:
// instructions, then DRAM.
#include <algorithm>
#include <limits>

#include <fmt/core.h>

#include "kernels/image/normalize_image.h"
#include "kernels/support/cuda/elementwise.cuh"
#include "kernels/support/cuda/numeric.cuh"
#include "kernels/support/cuda/pack.cuh"

namespace lockstep::kernels::cuda {
namespace {

constexpr int kMaxImageChannels = 64;

// Mean and standard deviation of each channel, as a kernel's argument.
struct Normalization {
  float mean[kMaxImageChannels], std[kMaxImageChannels];

  __device__ __forceinline__ float operator()(uint8_t byte, int channel) const {
    return (static_cast<float>(byte) / 255 - mean[channel]) / std[channel];
  }
};

// Errors: ShapeError for more than kMaxImageChannels channels.
inline Normalization normalization(const char* op,
                                   const NormalizeImageParams& params,
                                   int64_t channels) {
  if (channels > kMaxImageChannels) {
    throw ShapeError(fmt::format(
        "[{}] channels: got {}, expected {} at most on CUDA", op, channels, kMaxImageChannels));
  }
  Normalization table;
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    table.mean[c] = params.mean_of(c);
    table.std[c] = params.std_of(c);
  }
  return table;
}

template <class T>
struct NormalizeBody {
  static constexpr int kCount = 16 / sizeof(T);
  const uint8_t* in;
  T* out;
  int channels;
  Normalization normalized;

  template <int n>
  __device__ void run(int64_t first) const {
    const Pack<uint8_t, n> bytes = load_pack<n>(in + first);
    Pack<T, n> values;
    int channel = static_cast<int>(first % channels);
#pragma unroll
    for (int i = 0; i < n; ++i) {
      values[i] = from_float<T>(normalized(bytes[i], channel));
      channel = channel + 1 == channels ? 0 : channel + 1;
    }
    store_pack(out + first, values);
  }
};

constexpr int kCropThreads = 128;
constexpr int64_t kCropPacks = 4;  // per thread, at most

struct CropArguments {
  const uint8_t* in;
  const int64_t* indices;
  int channels, height, width;
  Augmentation augmentation;
  int64_t epoch;
  bool draws;
  CropFlip change;  // of all images, unless it is drawn for each
  Normalization normalized;
};

// Values [first, first + n) of one image.
template <class T, int n>
__device__ __forceinline__ Pack<T, n> changed(const CropArguments& a,
                                              const uint8_t* image,
                                              const CropFlip& change,
                                              int first) {
  const int top = static_cast<int>(change.top - a.augmentation.pad);
  const int left = static_cast<int>(change.left - a.augmentation.pad);
  int channel = first % a.channels;
  int x = first / a.channels % a.width;
  int y = first / a.channels / a.width;
  Pack<T, n> values;
#pragma unroll
  for (int i = 0; i < n; ++i) {
    const int column = change.flip ? a.width - 1 - x : x;
    const int from_y = pixel_at(a.augmentation.pad_mode, y + top, a.height);
    const int from_x = pixel_at(a.augmentation.pad_mode, column + left, a.width);
    const bool inside = from_y >= 0 && from_x >= 0;
    const uint8_t byte =
        inside ? image[(from_y * a.width + from_x) * a.channels + channel] : uint8_t{0};
    values[i] = from_float<T>(a.normalized(byte, channel));
    if (++channel < a.channels) continue;
    channel = 0;
    if (++x < a.width) continue;
    x = 0;
    ++y;
  }
  return values;
}

// Takes packs of n. Requires: `count` is a multiple of n.
template <class T, int n>
__global__ void __launch_bounds__(kCropThreads)
    crop_flip_normalize_kernel(const __grid_constant__ CropArguments a, T* out, int count) {
  const int64_t image = blockIdx.x;
  const CropFlip change =
      a.draws ? draw_crop_flip(a.augmentation, a.epoch, a.indices[image]) : a.change;
  const uint8_t* from = a.in + image * count;
  T* to = out + image * count;
  const int step = static_cast<int>(gridDim.y) * kCropThreads * n;
  for (int i = static_cast<int>(blockIdx.y * kCropThreads + threadIdx.x) * n; i < count; i += step)
    store_pack(to + i, changed<T, n>(a, from, change, i));
}

}  // namespace

void normalize_image(Stream& stream,
                     const Shards& /*shards*/,
                     const Tensor& in,
                     const NormalizeImageParams& params,
                     Tensor& out) {
  const int64_t channels = in.shape()[1];
  const Normalization normalized = normalization("normalize_image", params, channels);
  with_float_type(out.dtype(), [&]<class T>() {
    const NormalizeBody<T> body{
        in.data<uint8_t>(), elements<T>(out), static_cast<int>(channels), normalized};
    launch_elementwise(stream, "normalize_image", in.numel(), body, {body.in, body.out});
  });
}

void crop_flip_normalize(Stream& stream,
                         const Shards& /*shards*/,
                         const Tensor& in,
                         const Tensor& indices,
                         const CropFlipNormalizeParams& params,
                         Tensor& out) {
  const Shape& shape = in.shape();
  const int64_t count = shape.stride0();
  if (count > std::numeric_limits<int>::max() / 2) {
    throw ShapeError(
        fmt::format("[crop_flip_normalize] image: got {} bytes, expected less than 2^30", count));
  }
  const CropArguments arguments{in.data<uint8_t>(),
                                indices.data<int64_t>(),
                                static_cast<int>(shape[1]),
                                static_cast<int>(shape[2]),
                                static_cast<int>(shape[3]),
                                params.augmentation,
                                params.epoch,
                                !params.change,
                                params.change.value_or(CropFlip{}),
                                normalization("crop_flip_normalize", params.normalize, shape[1])};
  with_float_type(out.dtype(), [&]<class T>() {
    constexpr int kCount = 16 / sizeof(T);
    const bool packed = aligned({out.bytes()}) && count % kCount == 0;
    const int64_t packs = packed ? count / kCount : count;
    constexpr unsigned kMaxGridY = 65535;
    lockstep::cuda::launch(
        stream,
        "crop_flip_normalize",
        {dim3(static_cast<unsigned>(shape[0]),
              std::min(kMaxGridY, lockstep::cuda::blocks_for(packs, kCropThreads * kCropPacks))),
         kCropThreads},
        packed ? crop_flip_normalize_kernel<T, kCount> : crop_flip_normalize_kernel<T, 1>,
        arguments,
        elements<T>(out),
        static_cast<int>(count));
  });
}

}  // namespace lockstep::kernels::cuda
