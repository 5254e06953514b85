// Problems for tests of conv2d on the CPU, in every float type, with their results.
#pragma once

#include <vector>

#include "kernels/conv/conv2d.h"
#include "kernels/conv/winograd.h"
#include "kernels/support/isa.h"
#include "tests/reference/conv2d.h"
#include "tests/reference/winograd.h"
#include "tests/support/close_sum.h"
#include "tests/support/float_types.h"
#include "tests/support/poisoned_tensor.h"
#include "tests/support/random_tensor.h"

namespace lockstep::testing {

using reference::Conv2dSizes;

inline Conv2dSizes square(
    int64_t n, int64_t c, int64_t hw, int64_t k, int64_t rs, int64_t stride, int64_t pad) {
  return {n, c, hw, hw, k, rs, rs, stride, stride, pad, pad};
}

inline Conv2dSizes in_groups(int64_t groups, Conv2dSizes sizes) {
  sizes.groups = groups;
  return sizes;
}

// The tensors of one problem, with random values.
struct Conv2dProblem {
  explicit Conv2dProblem(const Conv2dSizes& sizes, Dtype dtype = Dtype::kF32)
      : z(sizes),
        params{.stride_h = static_cast<int>(z.stride_h),
               .stride_w = static_cast<int>(z.stride_w),
               .pad_h = static_cast<int>(z.pad_h),
               .pad_w = static_cast<int>(z.pad_w),
               .groups = static_cast<int>(z.groups)},
        in(rounded_to(dtype, random_tensor({z.n, z.c, z.h, z.w}, 1))),
        weight(rounded_to(dtype, random_tensor({z.k, z.group_channels(), z.r, z.s}, 2))),
        bias(random_tensor({z.k}, 3)),
        grad_out(rounded_to(dtype, random_tensor({z.n, z.k, z.oh(), z.ow()}, 4))) {}

  Conv2dProblem images(int64_t first, int64_t count) const {
    Conv2dProblem part = *this;
    part.z.n = count;
    part.in = in.slice(first, count);
    part.grad_out = grad_out.slice(first, count);
    return part;
  }
  Conv2dProblem as(Dtype dtype) const {
    Conv2dProblem other = *this;
    for (Tensor* tensor : {&other.in, &other.weight, &other.grad_out}) {
      *tensor = rounded_to(dtype, *tensor);
    }
    return other;
  }

  // Allows for Winograd's algorithm, which may compute 3x3 and 5x5 windows and scales terms up
  // before it adds them.
  ::testing::AssertionResult right_sum(const Tensor& got,
                                       const std::vector<double>& want,
                                       int64_t terms) const {
    const bool winograd = (z.r == 3 || z.r == 5) && z.stride_h == 1 && z.c >= 16 && z.k >= 16;
    return close_sum(got, want, winograd ? 16 * terms : terms);
  }

  // Whether conv2d uses Winograd's algorithm in bf16, which rounds the factors of its products.
  bool rounds_products() const {
    return kernels::isa_level() == kernels::IsaLevel::kV4 &&
           kernels::suits_winograd(Stream(), in.dtype(), in.shape(), weight.shape(), params);
  }
  std::vector<double> out_of_reference() const {
    if (!rounds_products()) {
      return reference::conv2d_forward(values_of(in), values_of(weight), values_of(bias), z);
    }
    std::vector<double> out = reference::winograd_forward(
        values_of(in), values_of(weight), z, reference::WinogradProducts::kOfBf16);
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] += get(bias, static_cast<int64_t>(i) % z.k);
    }
    return out;
  }
  std::vector<double> grad_in_of_reference() const {
    if (!rounds_products()) {
      return reference::conv2d_backward_data(values_of(grad_out), values_of(weight), z);
    }
    return reference::winograd_backward_data(
        values_of(grad_out), values_of(weight), z, reference::WinogradProducts::kOfBf16);
  }
  std::vector<double> grad_weight_of_reference() const {
    if (!rounds_products()) {
      return reference::conv2d_backward_weight(values_of(in), values_of(grad_out), z);
    }
    return reference::winograd_backward_weight(
        values_of(in), values_of(grad_out), z, reference::WinogradProducts::kOfBf16);
  }

  Conv2dSizes z;
  kernels::Conv2dParams params;
  Tensor in, weight, bias, grad_out;
};

// Results of the ops on a problem.
struct Conv2dResults {
  Tensor out, grad_in, grad_weight, grad_bias;
};

// The ops under test.
struct Conv2dOps {
  kernels::Conv2dForward* forward = kernels::conv2d_forward;
  kernels::Conv2dBackwardData* backward_data = kernels::conv2d_backward_data;
  kernels::Conv2dBackwardWeight* backward_weight = kernels::conv2d_backward_weight;
};

inline Conv2dResults run(Stream& stream,
                         const Shards& shards,
                         const Conv2dProblem& p,
                         const Conv2dOps& ops = {}) {
  const Dtype dtype = p.in.dtype();
  Conv2dResults results{
      .out = poisoned_tensor(p.grad_out.shape(), dtype),
      .grad_in = poisoned_tensor(p.in.shape(), dtype),
      .grad_weight = poisoned_tensor({shards.local(), p.weight.numel()}, Dtype::kF32),
      .grad_bias = poisoned_tensor({shards.local(), p.z.k}, Dtype::kF32)};
  ops.forward(stream, shards, {p.in, p.weight, p.bias, p.params, results.out});
  ops.backward_data(stream, shards, p.grad_out, p.weight, p.params, results.grad_in);
  ops.backward_weight(
      stream,
      shards,
      {p.in, p.grad_out, p.weight.shape(), p.params, results.grad_weight, &results.grad_bias});
  return results;
}

inline void expect_same_bits(const Conv2dResults& got, const Conv2dResults& want) {
  EXPECT_TRUE(same_bits(got.out, want.out));
  EXPECT_TRUE(same_bits(got.grad_in, want.grad_in));
  EXPECT_TRUE(same_bits(got.grad_weight, want.grad_weight));
  EXPECT_TRUE(same_bits(got.grad_bias, want.grad_bias));
}

// The expected results that do not depend on the shards.
struct Conv2dReference {
  explicit Conv2dReference(const Conv2dProblem& p)
      : out(p.out_of_reference()), grad_in(p.grad_in_of_reference()) {}

  std::vector<double> out, grad_in;
};

inline void expect_reference(const Conv2dResults& got,
                             const Shards& shards,
                             const Conv2dProblem& p,
                             const Conv2dReference& want) {
  const Conv2dSizes& z = p.z;
  EXPECT_TRUE(p.right_sum(got.out, want.out, z.terms_of_out()));
  EXPECT_TRUE(p.right_sum(got.grad_in, want.grad_in, z.terms_of_in()));
  for (int64_t k = 0; k < shards.local(); ++k) {
    const Conv2dProblem part = p.images(shards.begin(k), shards.count(k));
    const int64_t pixels = part.z.n * z.oh() * z.ow();
    EXPECT_TRUE(p.right_sum(got.grad_weight.slice(k, 1), part.grad_weight_of_reference(), pixels));
    EXPECT_TRUE(p.right_sum(got.grad_bias.slice(k, 1),
                            reference::conv2d_backward_bias(values_of(part.grad_out), z.k),
                            pixels));
  }
}

inline void expect_reference(const Conv2dResults& got,
                             const Shards& shards,
                             const Conv2dProblem& p) {
  expect_reference(got, shards, p, Conv2dReference(p));
}

}  // namespace lockstep::testing
