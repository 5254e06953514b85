// Kernels with one thread per pack of channels of each pixel of channels-last images.
#pragma once

#include <algorithm>
#include <limits>

#include <fmt/core.h>

#include "core/cuda/launch.h"
#include "kernels/support/cuda/pack.cuh"

namespace lockstep::kernels::cuda {
namespace {

// Division by a number that is known at launch: two instructions instead of the twenty of `/`.
// Requires: dividends and divisor in [0, 2^31), divisor not 0.
class Divider {
 public:
  explicit Divider(int64_t divisor) : divisor_(static_cast<unsigned>(divisor)) {
    if (divisor == 1) return;
    while (int64_t{1} << shift_ < divisor) ++shift_;
    --shift_;  // shifts the upper half of the product with ceil(2^(32 + shift) / divisor)
    multiplier_ = static_cast<unsigned>(((uint64_t{1} << 32 << shift_) + divisor_ - 1) / divisor_);
  }

  __device__ __forceinline__ unsigned quotient(unsigned dividend) const {
    return multiplier_ == 0 ? dividend : __umulhi(dividend, multiplier_) >> shift_;
  }
  __device__ __forceinline__ unsigned remainder(unsigned dividend, unsigned quotient) const {
    return dividend - quotient * divisor_;
  }

 private:
  unsigned divisor_;
  unsigned multiplier_ = 0;
  int shift_ = 0;
};

// Converts an extent or a count to a kernel's int. Errors: ShapeError when it is 2^31 or more.
inline int to_int(const char* op, int64_t value) {
  if (value > std::numeric_limits<int>::max()) {
    throw ShapeError(fmt::format("[{}] image: got {} elements, expected below 2^31", op, value));
  }
  return static_cast<int>(value);
}

// Calls body.operator()<n>() with the widest pack of T, of 16 or 8 bytes or one element, that
// divides the channels and for which every pointer is aligned.
template <class T, class Body>
void with_channel_pack(int64_t channels, std::initializer_list<const void*> pointers, Body&& body) {
  constexpr int kWide = 16 / sizeof(T);
  const bool words = aligned(pointers);
  if (words && channels % kWide == 0) return body.template operator()<kWide>();
  if (words && channels % (kWide / 2) == 0) return body.template operator()<kWide / 2>();
  body.template operator()<1>();
}

constexpr int kImageThreads = 256;
constexpr int kImageBlocks = 4;       // at least, per SM: 32 warps
constexpr int64_t kImageRows = 4096;  // of the grid, at most; each loops over images

struct ImagePlaces {
  Divider packs, width;  // packs per pixel; pixels per row
  unsigned count;        // packs per image
  int64_t images;
};

template <int n, class Body>
__global__ void __launch_bounds__(kImageThreads, kImageBlocks)
    image_kernel(const Body body, const ImagePlaces places) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= places.count) return;
  const unsigned pixel = places.packs.quotient(i);
  const auto c = static_cast<int>(places.packs.remainder(i, pixel)) * n;
  const unsigned y = places.width.quotient(pixel);
  const auto x = static_cast<int>(places.width.remainder(pixel, y));
  for (int64_t image = blockIdx.y; image < places.images; image += gridDim.y) {
    body.template run<n>(image, static_cast<int>(y), x, c);
  }
}

// Calls body.run<n>(image, y, x, c) for channels [c, c + n) of every pixel of (N,C,H,W).
// Errors: ShapeError when an image has 2^31 elements or more.
template <int n, class Body>
void launch_images(Stream& stream, const char* op, const Shape& shape, const Body& body) {
  if (shape.numel() == 0) return;
  const int64_t packs = shape[1] / n;
  const int64_t count = to_int(op, shape.stride0()) / n;
  const int64_t threads = std::min<int64_t>((count + 31) / 32 * 32, kImageThreads);
  const ImagePlaces places{
      Divider(packs), Divider(shape[3]), static_cast<unsigned>(count), shape[0]};
  const auto rows = static_cast<unsigned>(std::min(shape[0], kImageRows));
  lockstep::cuda::launch(
      stream,
      op,
      {dim3(lockstep::cuda::blocks_for(count, threads), rows), static_cast<unsigned>(threads)},
      image_kernel<n, Body>,
      body,
      places);
}

}  // namespace
}  // namespace lockstep::kernels::cuda
