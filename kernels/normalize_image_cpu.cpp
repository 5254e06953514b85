#include "kernels/cpu_loops.h"
#include "kernels/normalize_image.h"

namespace lockstep::kernels::LS_CPU {

void normalize_image(Stream& stream,
                     const Shards& shards,
                     const Tensor& in,
                     const NormalizeImageParams& params,
                     Tensor& out) {
  constexpr int64_t kBytes = 256;
  const int64_t channels = in.shape()[1];
  const auto table_size = static_cast<size_t>(channels * kBytes) * sizeof(float);
  auto* const table = reinterpret_cast<float*>(stream.workspace(table_size, 0).shared);
  const float* means = params.mean.empty() ? nullptr : params.mean.data();
  const float* stds = params.std.empty() ? nullptr : params.std.data();
  for (int64_t c = 0; c < channels; ++c) {
    const float mean = means == nullptr ? 0 : means[c];
    const float std = stds == nullptr ? 1 : stds[c];
    for (int32_t byte = 0; byte < kBytes; ++byte) {
      table[c * kBytes + byte] = (static_cast<float>(byte) / 255 - mean) / std;
    }
  }
  const int64_t pixels = in.shape()[2] * in.shape()[3];
  const uint8_t* from = in.data<uint8_t>();
  float* to = out.data<float>();
  for_images(stream, shards, [=](int64_t begin, int64_t end) {
    if (channels == 1) {
      for (int64_t i = begin * pixels; i < end * pixels; ++i) to[i] = table[from[i]];
      return;
    }
    for (int64_t p = begin * pixels; p < end * pixels; ++p) {
      for (int64_t c = 0; c < channels; ++c) {
        to[p * channels + c] = table[c * kBytes + from[p * channels + c]];
      }
    }
  });
}

}  // namespace lockstep::kernels::LS_CPU
