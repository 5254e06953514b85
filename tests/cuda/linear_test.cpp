#include "kernels/linear/linear.h"

#include <limits>

#include <fmt/core.h>

#include "tests/reference/linear.h"
#include "tests/support/close.h"
#include "tests/support/close_sum.h"
#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::linear_test {
namespace {

using testing::close_sum;
using testing::kFloatTypes;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::values_of;

struct Sizes {
  int64_t images, inputs, outputs;

  reference::LinearSizes of(int64_t count) const {
    return {static_cast<size_t>(count), static_cast<size_t>(inputs), static_cast<size_t>(outputs)};
  }
};

// Tensors of one problem on the CPU, random.
struct Problem {
  Problem(const Sizes& sizes, Dtype dtype)
      : z(sizes),
        in(rounded_to(dtype, random_tensor({z.images, z.inputs}, 1))),
        weight(rounded_to(dtype, random_tensor({z.outputs, z.inputs}, 2))),
        bias(rounded_to(Dtype::kF32, rounded_to(dtype, random_tensor({z.outputs}, 3)))),
        grad_out(rounded_to(dtype, random_tensor({z.images, z.outputs}, 4))) {}

  Problem part(int64_t first, int64_t count) const {
    Problem cut = *this;
    cut.z.images = count;
    cut.in = in.slice(first, count);
    cut.grad_out = grad_out.slice(first, count);
    return cut;
  }

  Sizes z;
  Tensor in, weight, bias, grad_out;
};

// What the ops make of a problem, on the CPU.
struct Results {
  Tensor out, grad_in, grad_weight, grad_bias;
};

class CudaLinear : public testing::CudaTest {
 protected:
  Results run(const Shards& shards, const Problem& p, bool aligned = true) {
    const auto put = [&](const Tensor& tensor) {
      return aligned ? upload(tensor) : upload_misaligned(tensor);
    };
    const Tensor in = put(p.in);
    const Tensor weight = put(p.weight);
    const Tensor grad_out = put(p.grad_out);
    Tensor out = poisoned(p.grad_out.shape(), p.in.dtype());
    Tensor grad_in = poisoned(p.in.shape(), p.in.dtype());
    Tensor grad_weight = poisoned({shards.local(), p.weight.numel()}, Dtype::kF32);
    Tensor grad_bias = poisoned({shards.local(), p.z.outputs}, Dtype::kF32);
    linear_forward(stream_, shards, in, weight, put(p.bias), out);
    linear_backward_data(stream_, shards, grad_out, weight, grad_in);
    linear_backward_weight(stream_, shards, in, grad_out, grad_weight, grad_bias);
    return {download(out), download(grad_in), download(grad_weight), download(grad_bias)};
  }
};

void expect_reference(const Results& got, const Shards& shards, const Problem& p) {
  const auto sizes = p.z.of(p.z.images);
  const std::vector<double> weight = values_of(p.weight);
  EXPECT_TRUE(
      close_sum(got.out,
                reference::linear_forward(values_of(p.in), weight, values_of(p.bias), sizes),
                p.z.inputs));
  EXPECT_TRUE(close_sum(got.grad_in,
                        reference::linear_backward_data(values_of(p.grad_out), weight, sizes),
                        p.z.outputs));
  for (int64_t k = 0; k < shards.local(); ++k) {
    const int64_t count = shards.count(k);
    const auto part = p.z.of(count);
    const std::vector<double> in = values_of(p.in.slice(shards.begin(k), count));
    const std::vector<double> grad_out = values_of(p.grad_out.slice(shards.begin(k), count));
    EXPECT_TRUE(close_sum(
        got.grad_weight.slice(k, 1), reference::linear_backward_weight(in, grad_out, part), count));
    EXPECT_TRUE(close_sum(
        got.grad_bias.slice(k, 1), reference::linear_backward_bias(grad_out, part), count));
  }
}

class CudaLinearCases : public CudaLinear, public ::testing::WithParamInterface<Sizes> {};

TEST_P(CudaLinearCases, MatchReferenceHoweverCut) {
  for (const Dtype dtype : kFloatTypes) {
    const Problem problem(GetParam(), dtype);
    for (const int64_t count : {1, 3}) {
      SCOPED_TRACE(fmt::format("{}, {} shards", name_of(dtype), count));
      const Shards shards = Shards::cut(problem.z.images, count, 1);
      expect_reference(run(shards, problem), shards, problem);
    }
    const Shards one = Shards::single(problem.z.images);
    expect_reference(run(one, problem, false), one, problem);
  }
}

TEST_P(CudaLinearCases, ShardHasTheBitsOfItsOwnRun) {
  for (const Dtype dtype : kFloatTypes) {
    const Problem whole(GetParam(), dtype);
    const Shards shards = Shards::cut(whole.z.images, 3, 1);
    const Results together = run(shards, whole);
    for (int64_t k = 0; k < shards.local(); ++k) {
      const int64_t first = shards.begin(k);
      const int64_t count = shards.count(k);
      const Results single = run(Shards::single(count), whole.part(first, count));
      EXPECT_TRUE(same_bits(together.out.slice(first, count), single.out));
      EXPECT_TRUE(same_bits(together.grad_in.slice(first, count), single.grad_in));
      EXPECT_TRUE(same_bits(together.grad_weight.slice(k, 1), single.grad_weight));
      EXPECT_TRUE(same_bits(together.grad_bias.slice(k, 1), single.grad_bias));
    }
  }
}

// Fewer than a tile, tiles, and a bit more.
INSTANTIATE_TEST_SUITE_P(Sizes,
                         CudaLinearCases,
                         ::testing::Values(Sizes{1, 1, 1},
                                           Sizes{5, 37, 10},
                                           Sizes{16, 16, 16},
                                           Sizes{17, 18, 17},
                                           Sizes{2, 8, 35},
                                           Sizes{35, 3, 1}));

TEST_F(CudaLinear, WithoutBias) {
  const Problem p({3, 20, 4}, Dtype::kF32);
  const Shards shards = Shards::single(3);
  Tensor out = poisoned({3, 4}, Dtype::kF32);
  Tensor grad_weight = poisoned({1, 80}, Dtype::kF32);
  Tensor no_grad_bias;
  const Tensor in = upload(p.in);
  linear_forward(stream_, shards, in, upload(p.weight), {}, out);
  linear_backward_weight(stream_, shards, in, upload(p.grad_out), grad_weight, no_grad_bias);
  EXPECT_TRUE(
      close_sum(download(out),
                reference::linear_forward(values_of(p.in), values_of(p.weight), {}, p.z.of(3)),
                20));
  EXPECT_TRUE(same_bits(download(grad_weight), run(shards, p).grad_weight));
}

TEST_F(CudaLinear, EmptyShardsLeavePositiveZero) {
  const Results got = run(Shards::cut(1, 4, 1), Problem({1, 7, 3}, Dtype::kF16));
  EXPECT_TRUE(same_bits(got.grad_weight.slice(0, 3), Tensor::zeros({3, 21}, Dtype::kF32)));
  EXPECT_TRUE(same_bits(got.grad_bias.slice(0, 3), Tensor::zeros({3, 3}, Dtype::kF32)));
  const Results none = run(Shards::cut(0, 2, 1), Problem({0, 7, 3}, Dtype::kF32));
  EXPECT_TRUE(same_bits(none.grad_weight, Tensor::zeros({2, 21}, Dtype::kF32)));
}

TEST_F(CudaLinear, NanAndInfinityStayInTheirRowsAndColumns) {
  for (const Dtype dtype : kFloatTypes) {
    Problem p({4, 17, 3}, dtype);
    testing::set(p.in, 16, std::numeric_limits<double>::quiet_NaN());
    testing::set(p.weight, 18, std::numeric_limits<double>::infinity());
    testing::set(p.grad_out, 0, std::numeric_limits<double>::quiet_NaN());
    const Shards shards = Shards::cut(4, 2, 1);
    expect_reference(run(shards, p), shards, p);
  }
}

TEST_F(CudaLinear, TensorsAreOfOneType) {
  const Problem p({2, 3, 4}, Dtype::kF16);
  const Shards shards = Shards::single(2);
  Tensor out = poisoned({2, 4}, Dtype::kF32);
  EXPECT_THROW(linear_forward(stream_, shards, upload(p.in), upload(p.weight), {}, out),
               DtypeError);
  Tensor grad_in = poisoned({2, 3}, Dtype::kBF16);
  EXPECT_THROW(linear_backward_data(stream_, shards, upload(p.grad_out), upload(p.weight), grad_in),
               DtypeError);
}

}  // namespace
}  // namespace lockstep::kernels::linear_test
