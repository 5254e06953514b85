#include "kernels/image/normalize_image.h"
#include "kernels/support/cpu/cpu_loops.h"
#include "kernels/support/cpu/float_line.h"

namespace lockstep::kernels::LS_CPU {
namespace {

template <class T>
void normalize(const uint8_t* in, int64_t count, const float* mean, const float* std, T* out) {
  map_lines(
      count,
      out,
      [](const Line& bytes, const Line& means, const Line& stds) {
        return Line::make(
            [&](int64_t i) { return (bytes.parts[i] / 255 - means.parts[i]) / stds.parts[i]; });
      },
      in,
      mean,
      std);
}

}  // namespace

void normalize_image(Stream& stream,
                     const Shards& shards,
                     const Tensor& in,
                     const NormalizeImageParams& params,
                     Tensor& out) {
  const int64_t channels = in.shape()[1];
  const int64_t pixels = in.shape()[2] * in.shape()[3];
  // Pixels side by side, so that any number of channels fills the processor's vectors.
  const int64_t lanes = 64 * channels;
  auto* const mean = reinterpret_cast<float*>(
      stream.workspace(static_cast<size_t>(2 * lanes) * sizeof(float), 0).shared);
  float* const std = mean + lanes;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    const auto c = static_cast<size_t>(lane % channels);
    mean[lane] = params.mean_of(c);
    std[lane] = params.std_of(c);
  }
  dispatch_float(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::Type;
    for_images(stream, shards, [&](int64_t begin, int64_t end) {
      const uint8_t* from = in.data<uint8_t>() + begin * pixels * channels;
      T* to = out.data<T>() + begin * pixels * channels;
      const int64_t count = (end - begin) * pixels * channels;
      int64_t i = 0;
      for (; i + lanes <= count; i += lanes) normalize(from + i, lanes, mean, std, to + i);
      normalize(from + i, count - i, mean, std, to + i);
    });
  });
}

}  // namespace lockstep::kernels::LS_CPU
