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

constexpr int64_t kBytes = 256;

// values[c * kBytes + byte] = the normalized value of a byte of channel c. A table lookup is
// cheaper than two divisions.
template <class T>
void fill_table(const NormalizeImageParams& params, int64_t channels, T* values) {
  for (int64_t c = 0; c < channels; ++c) {
    const auto i = static_cast<size_t>(c);
    const float mean = params.mean_of(i);
    const float std = params.std_of(i);
    for (int64_t byte = 0; byte < kBytes; ++byte) {
      *values++ = T((static_cast<float>(byte) / 255 - mean) / std);
    }
  }
}

template <class T>
struct ImageLoop {
  int64_t channels, height, width, pad;
  PadMode pad_mode;
  const T* table;

  void run(const uint8_t* in, const CropFlip& change, T* out) const {
    const int64_t step = change.flip ? -1 : 1;
    for (int64_t row = 0; row < height; ++row) {
      const int64_t y = pixel_at(pad_mode, row + change.top - pad, height);
      int64_t x = (change.flip ? width - 1 : 0) + change.left - pad;
      for (int64_t column = 0; column < width; ++column, x += step, out += channels) {
        const int64_t from_x = pixel_at(pad_mode, x, width);
        if (y < 0 || from_x < 0) {
          for (int64_t c = 0; c < channels; ++c) out[c] = table[c * kBytes];
          continue;
        }
        const uint8_t* pixel = in + (y * width + from_x) * channels;
        for (int64_t c = 0; c < channels; ++c) out[c] = table[c * kBytes + pixel[c]];
      }
    }
  }
};

}  // namespace

void normalize_image(Stream& stream,
                     const Shards& shards,
                     const Tensor& in,
                     const NormalizeImageParams& params,
                     Tensor& out) {
  const int64_t channels = in.shape()[1];
  const int64_t pixels = in.shape()[2] * in.shape()[3];
  // Constants for 64 adjacent pixels, so that any number of channels fills the vectors.
  const int64_t lanes = 64 * channels;
  auto* const mean = reinterpret_cast<float*>(
      stream.workspace(static_cast<size_t>(2 * lanes) * sizeof(float), 0).shared);
  float* const std = mean + lanes;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    const auto c = static_cast<size_t>(lane % channels);
    mean[lane] = params.mean_of(c);
    std[lane] = params.std_of(c);
  }
  dispatch_float(out.dtype(), [&]<class T>() {
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

void crop_flip_normalize(Stream& stream,
                         const Shards& shards,
                         const Tensor& in,
                         const Tensor& indices,
                         const CropFlipNormalizeParams& params,
                         Tensor& out) {
  const Shape& shape = in.shape();
  dispatch_float(out.dtype(), [&]<class T>() {
    auto* const table = reinterpret_cast<T*>(
        stream.workspace(static_cast<size_t>(shape[1] * kBytes) * sizeof(T), 0).shared);
    fill_table(params.normalize, shape[1], table);
    const auto& [augmentation, epoch, normalize, change] = params;
    const ImageLoop<T> loop{
        shape[1], shape[2], shape[3], augmentation.pad, augmentation.pad_mode, table};
    const int64_t pixels = shape.stride0();
    for_images(stream, shards, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const int64_t index = indices.data<int64_t>()[n];
        loop.run(in.data<uint8_t>() + n * pixels,
                 change ? *change : draw_crop_flip(augmentation, epoch, index),
                 out.data<T>() + n * pixels);
      }
    });
  });
}

}  // namespace lockstep::kernels::LS_CPU
