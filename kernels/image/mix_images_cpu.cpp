#include <algorithm>
#include <cstddef>

#include "kernels/image/mix_images.h"
#include "kernels/support/cpu/cpu_loops.h"
#include "kernels/support/cpu/float_line.h"

namespace lockstep::kernels::LS_CPU {
namespace {

constexpr int64_t kBlock = 2048;

template <class T>
void mix_pair(float mix, int64_t size, T* one, T* other) {
  float a[kBlock];
  float b[kBlock];
  float of_one[kBlock];
  for (int64_t first = 0; first < size; first += kBlock) {
    const int64_t n = std::min(kBlock, size - first);
    convert(one + first, n, a);
    convert(other + first, n, b);
    for (int64_t i = 0; i < n; ++i) {
      of_one[i] = mixed(mix, a[i], b[i]);
      b[i] = mixed(mix, b[i], a[i]);
    }
    convert(of_one, n, one + first);
    convert(b, n, other + first);
  }
}

// Calls visit(n, m) for each pair of images, on the shards' threads.
template <class Visit>
void for_pairs(Stream& stream, const Shards& shards, const Visit& visit) {
  stream.fork(shards.local(), [&](int64_t k, int) {
    const int64_t begin = shards.begin(k);
    const int64_t end = shards.begin(k + 1);
    for (int64_t n = begin; n < partner_of(begin, end, n); ++n) visit(n, partner_of(begin, end, n));
  });
}

}  // namespace

void mix_images(Stream& stream, const Shards& shards, const Tensor& mix, Tensor& images) {
  const float weight = *mix.data<float>();
  const int64_t size = images.shape().stride0();
  dispatch_float(images.dtype(), [&]<class T>() {
    T* first = images.data<T>();
    for_pairs(stream, shards, [=](int64_t n, int64_t m) {
      mix_pair(weight, size, first + n * size, first + m * size);
    });
  });
}

void swap_boxes(Stream& stream, const Shards& shards, const Region& box, Tensor& images) {
  const Shape& shape = images.shape();
  const int64_t pixel = static_cast<int64_t>(size_of(images.dtype())) * shape[1];
  const int64_t row = pixel * shape[3];
  for_pairs(stream, shards, [&](int64_t n, int64_t m) {
    for (int64_t y = box.top; y < box.top + box.height; ++y) {
      std::byte* const one = images.bytes() + (n * shape[2] + y) * row + box.left * pixel;
      std::byte* const other = one + (m - n) * shape[2] * row;
      std::swap_ranges(one, one + box.width * pixel, other);
    }
  });
}

}  // namespace lockstep::kernels::LS_CPU
