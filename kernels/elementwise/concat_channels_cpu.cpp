#include <cstring>

#include "kernels/elementwise/concat_channels.h"
#include "kernels/support/cpu/cpu_loops.h"

namespace lockstep::kernels::LS_CPU {
namespace {

// Calls copy(whole, part, bytes) for the channels of `a` of each pixel, then for those of `b`.
template <class Whole, class Part, class Copy>
[[gnu::always_inline]] inline void for_parts(
    Stream& stream, const Shards& shards, Whole& whole, Part& a, Part& b, Copy&& copy) {
  const Shape& shape = whole.shape();
  const int64_t pixels = shape[2] * shape[3];
  const auto size = static_cast<int64_t>(size_of(whole.dtype()));
  const int64_t of_a = a.shape()[1] * size;
  const int64_t of_b = b.shape()[1] * size;
  auto* const all = whole.bytes();
  auto* const first = a.bytes();
  auto* const second = b.bytes();
  for_images(stream, shards, [=](int64_t begin, int64_t end) {
    for (int64_t p = begin * pixels; p < end * pixels; ++p) {
      copy(all + p * (of_a + of_b), first + p * of_a, static_cast<size_t>(of_a));
      copy(all + p * (of_a + of_b) + of_a, second + p * of_b, static_cast<size_t>(of_b));
    }
  });
}

}  // namespace

void concat_channels_forward(
    Stream& stream, const Shards& shards, const Tensor& a, const Tensor& b, Tensor& out) {
  if (out.numel() == 0) return;
  for_parts(stream, shards, out, a, b, [](std::byte* whole, const std::byte* part, size_t bytes) {
    std::memcpy(whole, part, bytes);
  });
}

void concat_channels_backward(
    Stream& stream, const Shards& shards, const Tensor& grad_out, Tensor& grad_a, Tensor& grad_b) {
  if (grad_out.numel() == 0) return;
  for_parts(stream,
            shards,
            grad_out,
            grad_a,
            grad_b,
            [](const std::byte* whole, std::byte* part, size_t bytes) {
              std::memcpy(part, whole, bytes);
            });
}

}  // namespace lockstep::kernels::LS_CPU
