#include "kernels/pool/subsample_pad.h"
#include "kernels/support/cpu/cpu_loops.h"

namespace lockstep::kernels::LS_CPU {
namespace {

// Values are copied as bytes, so that one loop works for all types.
struct PixelBytes {
  PixelBytes(const Tensor& wide_image, const Tensor& narrow_image)
      : wide(bytes_of(wide_image)), narrow(bytes_of(narrow_image)), pad((narrow - wide) / 2) {}

  int64_t wide, narrow, pad;

 private:
  static int64_t bytes_of(const Tensor& image) {
    return image.shape()[1] * static_cast<int64_t>(size_of(image.dtype()));
  }
};

// Calls body(wide pixel, narrow pixel) with the indices of corresponding pixels, for images [begin,
// end).
template <class Body>
[[gnu::always_inline]] inline void for_pixels(
    const Shape& wide, const Shape& narrow, int stride, int64_t begin, int64_t end, Body&& body) {
  for (int64_t row = begin * narrow[2]; row < end * narrow[2]; ++row) {
    const int64_t wide_row = row / narrow[2] * wide[2] + row % narrow[2] * stride;
    for (int64_t x = 0; x < narrow[3]; ++x) {
      body(wide_row * wide[3] + x * stride, row * narrow[3] + x);
    }
  }
}

}  // namespace

void subsample_pad_forward(
    Stream& stream, const Shards& shards, const Tensor& in, int stride, Tensor& out) {
  const PixelBytes bytes(in, out);
  const std::byte* from = in.bytes();
  std::byte* to = out.bytes();
  for_images(stream, shards, [&](int64_t begin, int64_t end) {
    for_pixels(in.shape(), out.shape(), stride, begin, end, [&](int64_t wide, int64_t narrow) {
      std::byte* pixel = to + narrow * bytes.narrow;
      std::fill_n(pixel, bytes.pad, std::byte{0});
      std::copy_n(from + wide * bytes.wide, bytes.wide, pixel + bytes.pad);
      std::fill_n(pixel + bytes.pad + bytes.wide, bytes.pad, std::byte{0});
    });
  });
}

void subsample_pad_backward(
    Stream& stream, const Shards& shards, const Tensor& grad_out, int stride, Tensor& grad_in) {
  const PixelBytes bytes(grad_in, grad_out);
  const std::byte* from = grad_out.bytes();
  std::byte* to = grad_in.bytes();
  const int64_t image = grad_in.shape().stride0() * static_cast<int64_t>(size_of(grad_in.dtype()));
  for_images(stream, shards, [&](int64_t begin, int64_t end) {
    std::fill(to + begin * image, to + end * image, std::byte{0});
    for_pixels(
        grad_in.shape(), grad_out.shape(), stride, begin, end, [&](int64_t wide, int64_t narrow) {
          std::copy_n(from + narrow * bytes.narrow + bytes.pad, bytes.wide, to + wide * bytes.wide);
        });
  });
}

}  // namespace lockstep::kernels::LS_CPU
