#include "nn/init.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/transfer.h"

namespace lockstep::nn {
namespace {

Tensor uniform(const Init& init, const Shape& shape, double bound) {
  if (init.device == Device::kDry) return Tensor::empty(shape, Dtype::kF32, init.device);
  Tensor row_major = Tensor::empty(shape, Dtype::kF32);
  init.rng.uniform(row_major.span<float>(), static_cast<float>(-bound), static_cast<float>(bound));
  return to_device(init.device, from_row_major(row_major));
}

}  // namespace

Tensor default_weight(const Init& init, const Shape& shape, int64_t fan_in) {
  const double gain = std::sqrt(2.0 / (1 + 5));
  const double std = gain / std::sqrt(static_cast<double>(fan_in));
  return uniform(init, shape, std::sqrt(3.0) * std);
}

Tensor default_bias(const Init& init, int64_t size, int64_t fan_in) {
  return uniform(init, {size}, 1 / std::sqrt(static_cast<double>(fan_in)));
}

void kaiming_normal(const Init& init, Fan fan, Tensor& weight) {
  const Shape& shape = weight.shape();
  const int64_t fan_in = shape.stride0();
  const int64_t fan_out = shape[0] * (fan_in / shape[1]);
  normal(init, std::sqrt(2.0 / static_cast<double>(fan == Fan::kIn ? fan_in : fan_out)), weight);
}

void normal(const Init& init, double std, Tensor& weight) {
  if (init.device == Device::kDry) return;
  Tensor row_major = Tensor::empty(weight.shape(), Dtype::kF32);
  init.rng.normal(row_major.span<float>(), 0, static_cast<float>(std));
  overwrite(from_row_major(row_major), weight);
}

void dirac(const Init& init, Tensor& weight) {
  if (init.device == Device::kDry) return;
  const Shape& shape = weight.shape();
  const int64_t center = shape[2] / 2 * shape[3] + shape[3] / 2;
  Tensor values = to_row_major(to_cpu(weight));  // a copy
  float* filter = values.data<float>();
  for (int64_t k = 0; k < std::min(shape[0], shape[1]); ++k, filter += shape.stride0()) {
    std::fill_n(filter, shape.stride0(), 0.0F);
    filter[k * shape[2] * shape[3] + center] = 1;
  }
  overwrite(from_row_major(values), weight);
}

void binomial(const Init& init, Tensor& weight) {
  if (init.device == Device::kDry) return;
  constexpr std::array<float, 3> kRow = {0.25F, 0.5F, 0.25F};
  Tensor values = Tensor::empty(weight.shape(), Dtype::kF32);
  auto* tap = values.data<float>();
  for (int64_t c = 0; c < weight.shape()[0]; ++c) {
    for (const float above : kRow) {
      for (const float beside : kRow) *tap++ = above * beside;
    }
  }
  overwrite(values, weight);
}

void fill(const Init& init, float value, Tensor& tensor) {
  if (init.device == Device::kDry) return;
  Tensor values = Tensor::empty(tensor.shape(), Dtype::kF32);
  std::ranges::fill(values.span<float>(), value);
  overwrite(values, tensor);
}

}  // namespace lockstep::nn
