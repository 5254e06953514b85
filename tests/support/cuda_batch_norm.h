// Compares batch norm on CUDA with its reference, for activations of each type and shape.
#pragma once

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "tests/reference/batch_norm.h"
#include "tests/support/batch_norm_step.h"
#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"

namespace lockstep::testing {

inline Tensor as_f32(const Tensor& tensor) {
  return rounded_to(Dtype::kF32, tensor);
}

class CudaBatchNormTest : public CudaTestWith<std::tuple<Dtype, Shape>> {
 protected:
  Dtype dtype() const { return std::get<0>(GetParam()); }
  const Shape& shape() const { return std::get<1>(GetParam()); }

  // Inputs on the CPU in f32, with activations that are representable in dtype().
  BatchNormInputs inputs(bool with_residual) const {
    BatchNormInputs x(shape(), with_residual);
    const auto round = [&](Tensor& tensor) { tensor = as_f32(rounded_to(dtype(), tensor)); };
    round(x.in);
    round(x.grad_out);
    if (with_residual) round(x.residual);
    return x;
  }
  Tensor activation(const Tensor& values, bool aligned = true) {
    if (!values.defined()) return {};
    const Tensor rounded = rounded_to(dtype(), values);
    return aligned ? upload(rounded) : upload_misaligned(rounded);
  }
  BatchNormInputs on_device(BatchNormInputs x, bool aligned = true) {
    for (Tensor* tensor : {&x.in, &x.grad_out, &x.residual}) *tensor = activation(*tensor, aligned);
    x.weight = upload(x.weight);
    x.bias = upload(x.bias);
    return x;
  }
  BatchNormStep on_cpu(BatchNormStep step) {
    for (Tensor* tensor : {&step.leaves,
                           &step.stats,
                           &step.out,
                           &step.grad_weight_leaves,
                           &step.grad_bias_leaves,
                           &step.grad_weight,
                           &step.grad_bias,
                           &step.grad_in,
                           &step.grad_residual}) {
      if (tensor->defined()) *tensor = download(*tensor);
    }
    return step;
  }

  // The tolerance of an element of dtype() that was computed in f32.
  Tolerance element() const {
    const double rounding = dtype() == Dtype::kF16 ? 0x1p-11 : dtype() == Dtype::kBF16 ? 0x1p-8 : 0;
    return {.rel = 2e-6 + rounding, .abs = 4e-6};
  }
  // The tolerance of grad_in if GELU follows: then g has been rounded as well.
  Tolerance gelu_tolerance(const reference::BatchNormGradients& grads, double largest_scale) const {
    double largest = 0;
    for (const double g : grads.residual) largest = std::max(largest, std::abs(g));
    Tolerance tolerance = element();
    tolerance.abs += tolerance.rel * largest_scale * largest;
    return tolerance;
  }
  // Checks images [first, first + images), which formed one group, against row `group` of the
  // statistics and gradients. `m2_error`: the allowed absolute error of M2, for sums of squares
  // from which the mean is subtracted. Requires: `got` is on the CPU.
  void expect_group_matches_reference(const BatchNormInputs& x,
                                      const BatchNormStep& got,
                                      const kernels::BatchNormParams& params,
                                      int64_t first,
                                      int64_t images,
                                      int64_t group,
                                      double m2_error = 1e-12) const;
};

inline void CudaBatchNormTest::expect_group_matches_reference(
    const BatchNormInputs& x,
    const BatchNormStep& got,
    const kernels::BatchNormParams& params,
    int64_t first,
    int64_t images,
    int64_t group,
    double m2_error) const {
  const auto part = [&](const Tensor& batch) {
    return batch.defined() ? values_of(batch.slice(first, images)) : std::vector<double>();
  };
  const auto near = [&](const Tensor& batch, const std::vector<double>& want, Tolerance tolerance) {
    const Tensor floats = as_f32(batch.slice(first, images));
    return close(floats.span<const float>(), want, tolerance);
  };
  const auto row = [&](const Tensor& rows) {
    return rows.slice(group, 1).span<const float>().first(static_cast<size_t>(rows.shape()[1]));
  };
  const auto channels = static_cast<size_t>(x.channels());
  const auto weight = values_of(x.weight);
  const auto bias = values_of(x.bias);
  const auto moments = reference::batch_norm_moments(part(x.in), channels);
  const auto out = reference::batch_norm_forward(
      part(x.in), weight, bias, params.eps, params.activation, part(x.residual));
  const auto grads = reference::batch_norm_backward(
      part(x.in), part(x.grad_out), weight, bias, params.eps, params.activation, part(x.residual));
  const Tolerance sum = f32_sum(images * x.pixels());
  EXPECT_TRUE(close(row(got.stats).first(channels), moments.mean, {.rel = 1e-6, .abs = 3e-7}));
  EXPECT_TRUE(close(row(got.stats).subspan(channels, channels), moments.m2, {2e-6, m2_error}));
  EXPECT_EQ(row(got.stats).back(), static_cast<float>(images));
  EXPECT_TRUE(near(got.out, out, element()));
  EXPECT_TRUE(close(row(got.grad_bias), grads.bias, sum));
  EXPECT_TRUE(close(row(got.grad_weight), grads.weight, sum));
  const bool gelu = params.activation == kernels::Activation::kGelu;
  double scale = 0;
  for (size_t c = 0; c < channels; ++c) {
    const double variance = moments.m2[c] / moments.count;
    scale = std::max(scale, std::abs(weight[c]) / std::sqrt(variance + double{params.eps}));
  }
  EXPECT_TRUE(near(got.grad_in, grads.in, gelu ? gelu_tolerance(grads, scale) : element()));
  if (!got.grad_residual.defined()) return;
  EXPECT_TRUE(near(got.grad_residual, grads.residual, gelu ? element() : Tolerance{}));
}

}  // namespace lockstep::testing
