#include "kernels/reduce/tensor_norms.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/reference/tensor_norms.h"
#include "tests/support/close.h"
#include "tests/support/float_types.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/norm_probe.h"
#include "tests/support/poisoned_tensor.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::tensor_norms_test {
namespace {

using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::tensor_of;
using testing::values_of;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// By the specification, which fixes every bit.
Tensor expected(const std::vector<Tensor>& tensors) {
  std::vector<std::vector<double>> values;
  values.reserve(tensors.size());
  for (const Tensor& tensor : tensors) values.push_back(values_of(tensor));
  const std::vector<double> norms = reference::tensor_norms(values);
  return tensor_of(norms, {static_cast<int64_t>(norms.size())}, Dtype::kF32);
}

Tensor norms_of(Stream& stream, const std::vector<Tensor>& tensors) {
  Tensor norms = poisoned_tensor({static_cast<int64_t>(tensors.size()) + 1}, Dtype::kF32);
  tensor_norms(stream, tensors, norms);
  return norms;
}

TEST(TensorNorms, GivesTheSpecifiedBitsOnAnyNumberOfThreads) {
  const std::vector<int64_t> lengths = {1, 0, 1023, 1024, 1025, 16384, 16385, 85000, 7};
  std::vector<Tensor> tensors;
  for (const Dtype dtype : kFloatTypes) {
    for (const int64_t length : lengths)
      tensors.push_back(rounded_to(dtype, random_tensor({length}, tensors.size() + 1)));
  }
  const Tensor want = expected(tensors);
  for (const int threads : {1, 2, 3}) {
    Stream stream(Device::kCpu, threads);
    EXPECT_TRUE(same_bits(norms_of(stream, tensors), want)) << threads << " threads";
  }
}

TEST(TensorNorms, AddInTheSpecifiedOrder) {
  Stream stream(Device::kCpu, 2);
  for (const std::vector<int64_t>& lengths :
       {std::vector<int64_t>{4096}, {3 * kNormChunk}, {4096, 70, 5000}}) {
    int lifted = 0;
    for (uint64_t seed = 0; seed < 40; ++seed) {
      const Dtype dtype = kFloatTypes[seed % 3];
      const std::vector<Tensor> tensors = testing::norm_probe(dtype, lengths, seed);
      const Tensor want = expected(tensors);
      EXPECT_TRUE(same_bits(norms_of(stream, tensors), want)) << seed;
      lifted += want.span<const float>().back() > 8 ? 1 : 0;
    }
    EXPECT_GT(lifted, 5);
    EXPECT_LT(lifted, 35);
  }
}

TEST(TensorNorms, OfKnownVectors) {
  Stream stream;
  const std::vector<double> pair = {3, -4};
  const std::vector<double> ones(70000, 1.0);
  const Tensor norms = norms_of(stream,
                                {tensor_of(pair, {2}, Dtype::kF32),
                                 tensor_of(ones, {70000}, Dtype::kF16),
                                 Tensor::zeros({5}, Dtype::kBF16)});
  EXPECT_EQ(norms.span<const float>()[0], 5);
  EXPECT_EQ(norms.span<const float>()[1], std::sqrt(70000.0F));
  EXPECT_EQ(norms.span<const float>()[2], 0);
  EXPECT_EQ(norms.span<const float>()[3], std::sqrt(70025.0F));
  EXPECT_EQ(norms_of(stream, {}).span<const float>()[0], 0);
}

TEST(TensorNorms, NeitherOverflowNorVanish) {
  Stream stream;
  const std::vector<double> large = {3e37, 4e37};
  const std::vector<double> small = {3e-40, 4e-40};
  const Tensor norms =
      norms_of(stream, {tensor_of(large, {2}, Dtype::kF32), tensor_of(small, {2}, Dtype::kF32)});
  EXPECT_NEAR(norms.span<const float>()[0], 5e37F, 1e31);
  EXPECT_NEAR(norms.span<const float>()[1], 5e-40F, 1e-44);
}

TEST(TensorNorms, SayWhatIsNotFinite) {
  Stream stream;
  const std::vector<double> infinite = {1, -kInf};
  const std::vector<double> broken = {1, kInf, kNan};
  const Tensor fine = Tensor::zeros({3}, Dtype::kF32);
  for (const Dtype dtype : kFloatTypes) {
    const Tensor infinities = norms_of(stream, {fine, tensor_of(infinite, {2}, dtype)});
    EXPECT_EQ(infinities.span<const float>()[0], 0);
    EXPECT_EQ(infinities.span<const float>()[1], kInf);
    EXPECT_EQ(infinities.span<const float>()[2], kInf);
    const Tensor nans = norms_of(stream, {fine, tensor_of(broken, {3}, dtype)});
    EXPECT_EQ(nans.span<const float>()[0], 0);
    EXPECT_TRUE(std::isnan(nans.span<const float>()[1]));
    EXPECT_TRUE(std::isnan(nans.span<const float>()[2]));
  }
}

TEST(TensorNorms, InstructionSetsAgree) {
  Stream stream;
  const Tensor tensor = rounded_to(Dtype::kF16, random_tensor({20001}, 1));
  const Tensor want = expected({tensor});
  for (TensorNorms* body : LS_ISA_BODIES(tensor_norms)) {
    Tensor norms = poisoned_tensor({2}, Dtype::kF32);
    body(stream, {&tensor, 1}, norms);
    EXPECT_TRUE(same_bits(norms, want));
  }
}

TEST(TensorNorms, RejectsBadArguments) {
  Stream stream;
  const Tensor tensor = Tensor::zeros({3}, Dtype::kF32);
  const Tensor integers = Tensor::zeros({3}, Dtype::kI32);
  Tensor one = Tensor::zeros({1}, Dtype::kF32);
  Tensor two = Tensor::zeros({2}, Dtype::kF32);
  Tensor halves = Tensor::zeros({2}, Dtype::kF16);
  EXPECT_THROW(tensor_norms(stream, {&integers, 1}, two), DtypeError);
  EXPECT_THROW(tensor_norms(stream, {&tensor, 1}, halves), DtypeError);
  try {
    tensor_norms(stream, {&tensor, 1}, one);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "[tensor_norms] norms: shape (1), expected (2)");
  }
}

TEST(TensorNorms, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  const std::vector<Tensor> tensors = {Tensor::empty({10}, Dtype::kF32, Device::kDry),
                                       Tensor::empty({10}, Dtype::kF16, Device::kDry)};
  Tensor norms = Tensor::empty({3}, Dtype::kF32, Device::kDry);
  tensor_norms(stream, tensors, norms);
  ASSERT_EQ(stream.ledger().size(), 1U);
  EXPECT_EQ(stream.ledger()[0].bytes, 72);
  EXPECT_EQ(stream.ledger()[0].flops, 40);
}

}  // namespace
}  // namespace lockstep::kernels::tensor_norms_test
