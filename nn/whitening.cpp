#include "nn/whitening.h"

#include <cmath>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "core/check.h"
#include "core/transfer.h"
#include "nn/eigenpairs.h"
#include "nn/functional.h"
#include "nn/init.h"

namespace lockstep::nn {
namespace {

constexpr double kMinVariance = 5e-4;     // added to each eigenvalue
constexpr int64_t kMaxColumns = 1 << 15;  // in a patch row, so that its sums fit into 32 bits

// Sums over patches of pixels. A patch has n byte values, in the order (C,R,S) of a filter.
struct PatchSums {
  int64_t patches = 0;
  std::vector<int64_t> values;    // (n)
  std::vector<int64_t> products;  // (n,n), symmetric
};

// All patches with the same top row of an image, stored as (n, columns).
class PatchRow {
 public:
  PatchRow(const Shape& images, int kernel)
      : kernel_(kernel),
        channels_(images[1]),
        width_(images[3]),
        columns_(width_ - kernel + 1),
        values_(static_cast<size_t>(channels_ * kernel * kernel * columns_)) {}

  // `rows`: `kernel` rows of pixels of interleaved channels.
  void fill(const uint8_t* rows) {
    int16_t* to = values_.data();
    for (int64_t c = 0; c < channels_; ++c) {
      for (int r = 0; r < kernel_; ++r) {
        for (int s = 0; s < kernel_; ++s, to += columns_) {
          const uint8_t* from = rows + (r * width_ + s) * channels_ + c;
          for (int64_t x = 0; x < columns_; ++x) to[x] = from[x * channels_];
        }
      }
    }
  }
  void add_to(PatchSums& sums) const {
    const auto n = std::ssize(sums.values);
    for (int64_t i = 0; i < n; ++i) {
      const int16_t* a = values_.data() + i * columns_;
      int32_t sum = 0;
      for (int64_t x = 0; x < columns_; ++x) sum += a[x];
      sums.values[static_cast<size_t>(i)] += sum;
      for (int64_t j = 0; j <= i; ++j) {
        const int16_t* b = values_.data() + j * columns_;
        int32_t product = 0;
        for (int64_t x = 0; x < columns_; ++x) product += a[x] * b[x];
        sums.products[static_cast<size_t>(i * n + j)] += product;
      }
    }
    sums.patches += columns_;
  }

 private:
  int kernel_;
  int64_t channels_, width_, columns_;
  std::vector<int16_t> values_;
};

PatchSums sum_patches(const Tensor& images, int kernel) {
  const Shape& shape = images.shape();
  const auto n = static_cast<size_t>(shape[1] * kernel * kernel);
  PatchSums sums{.values = std::vector<int64_t>(n), .products = std::vector<int64_t>(n * n)};
  PatchRow row(shape, kernel);
  const int64_t row_bytes = shape[3] * shape[1];
  for (int64_t image = 0; image < shape[0]; ++image) {
    const uint8_t* pixels = images.data<uint8_t>() + image * shape.stride0();
    for (int64_t y = 0; y + kernel <= shape[2]; ++y) {
      row.fill(pixels + y * row_bytes);
      row.add_to(sums);
    }
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < i; ++j) sums.products[j * n + i] = sums.products[i * n + j];
  }
  return sums;
}

// Mean products of two normalized values, (n,n), computed from the bytes' sums, where a byte is
// normalized to (byte / 255 - mean) / std.
std::vector<double> second_moments(const PatchSums& sums,
                                   const kernels::NormalizeImageParams& normalize,
                                   int64_t values_per_channel) {
  const size_t n = sums.values.size();
  const auto patches = static_cast<double>(sums.patches);
  std::vector<double> scale(n), shift(n), mean(n);  // normalized = byte * scale - shift
  for (size_t i = 0; i < n; ++i) {
    const size_t channel = i / static_cast<size_t>(values_per_channel);
    const auto deviation = static_cast<double>(normalize.std_of(channel));
    scale[i] = 1 / (255 * deviation);
    shift[i] = static_cast<double>(normalize.mean_of(channel)) / deviation;
    mean[i] = static_cast<double>(sums.values[i]) / patches * scale[i];
  }
  std::vector<double> moments(n * n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      const double product = static_cast<double>(sums.products[i * n + j]) / patches;
      moments[i * n + j] = product * scale[i] * scale[j] -
                           (mean[i] * shift[j] + mean[j] * shift[i]) + shift[i] * shift[j];
    }
  }
  return moments;
}

}  // namespace

Whitening::Whitening(const Init& init, int64_t channels, int kernel) {
  const int64_t n = channels * kernel * kernel;
  weight_ = register_frozen("weight", default_weight(init, {2 * n, channels, kernel, kernel}, n));
  Tensor bias = default_bias(init, 2 * n, n);  // drawn as PyTorch's layer does
  fill(init, 0, bias);
  bias_ = register_parameter("bias", std::move(bias));
}

Var Whitening::forward(const Var& x) {
  return conv2d(x, weight_, bias_, {});
}

void Whitening::fit(const Tensor& images, const kernels::NormalizeImageParams& normalize) {
  const Shape& filters = weight_.shape();
  const Shape& shape = images.shape();
  const auto kernel = static_cast<int>(filters[2]);
  if (shape.rank() != 4 || shape[0] < 1 || shape[1] != filters[1] || shape[2] < kernel ||
      shape[3] < kernel || shape[3] >= kMaxColumns) {
    throw ShapeError(
        fmt::format("[whitening] images: got {}, expected (N,{},H,W) with patches of {}x{}, W < {}",
                    to_string(shape),
                    filters[1],
                    kernel,
                    kernel,
                    kMaxColumns));
  }
  const std::vector<double> moments =
      second_moments(sum_patches(images, kernel), normalize, int64_t{kernel} * kernel);
  const int64_t n = filters.stride0();
  Tensor row_major = Tensor::empty(filters, Dtype::kF32);
  float* to = row_major.data<float>();
  float* opposite = to + n * n;
  for (const Eigenpair& pair : eigenpairs(moments, static_cast<int>(n))) {
    const double factor = 1 / std::sqrt(pair.value + kMinVariance);
    for (const double component : pair.vector) {
      *to = static_cast<float>(component * factor);
      *opposite++ = -*to++;
    }
  }
  Tensor weight = weight_.value();
  overwrite(from_row_major(row_major), weight);
}

void fit_whitening(Module& network,
                   const kernels::NormalizeImageParams& normalize,
                   FunctionRef<Tensor()> images) {
  std::vector<Whitening*> layers;
  network.apply([&](Module& module) {
    if (auto* layer = dynamic_cast<Whitening*>(&module)) layers.push_back(layer);
  });
  if (layers.empty()) return;
  const Tensor given = images();
  for (Whitening* layer : layers) layer->fit(given, normalize);
}

}  // namespace lockstep::nn
