#include "kernels/elementwise/copy.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/reference/copy.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/poisoned_tensor.h"

namespace lockstep::kernels::copy_test {
namespace {

using testing::poisoned_tensor;

// Every bit pattern of a byte, so NaNs of all kinds too.
Tensor counting_tensor(const Shape& shape, Dtype dtype) {
  Tensor tensor = Tensor::empty(shape, dtype);
  for (size_t i = 0; i < tensor.nbytes(); ++i) tensor.bytes()[i] = static_cast<std::byte>(i * 7);
  return tensor;
}

std::vector<std::byte> bytes(const Tensor& tensor) {
  return {tensor.bytes(), tensor.bytes() + tensor.nbytes()};
}

class CopyDtypes : public ::testing::TestWithParam<Dtype> {};

TEST_P(CopyDtypes, CopiesBitForBitOnAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3}) {
    Stream stream(Device::kCpu, threads);
    for (const int64_t length : {0, 1, 17, 50021}) {
      const Tensor src = counting_tensor({length}, GetParam());
      Tensor dst = poisoned_tensor({length}, GetParam());
      copy(stream, src, dst);
      EXPECT_EQ(bytes(dst), reference::copy(bytes(src))) << length << " on " << threads;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(
    Dtypes,
    CopyDtypes,
    ::testing::Values(Dtype::kF32, Dtype::kF16, Dtype::kBF16, Dtype::kU8, Dtype::kI32, Dtype::kI64),
    [](const auto& type) { return std::string(name_of(type.param)); });

TEST(Copy, InstructionSetsAgree) {
  Stream stream;
  const Tensor src = counting_tensor({2, 3, 4, 5}, Dtype::kF32);
  for (Copy* body : LS_ISA_BODIES(copy)) {
    Tensor dst = poisoned_tensor(src.shape(), Dtype::kF32);
    body(stream, src, dst);
    EXPECT_EQ(bytes(dst), bytes(src));
  }
}

TEST(Copy, RejectsOtherShapesAndDtypes) {
  Stream stream;
  const Tensor src = Tensor::zeros({2, 3}, Dtype::kF32);
  Tensor integers = Tensor::zeros({2, 3}, Dtype::kI32);
  EXPECT_THROW(copy(stream, src, integers), DtypeError);
  EXPECT_THROW(copy(stream, Tensor(), integers), ShapeError);
  Tensor dst = Tensor::zeros({3, 2}, Dtype::kF32);
  try {
    copy(stream, src, dst);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "[copy] dst: shape (3,2), expected (2,3)");
  }
}

TEST(Copy, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  const Tensor src = Tensor::empty({10}, Dtype::kF16, Device::kDry);
  Tensor dst = Tensor::empty({10}, Dtype::kF16, Device::kDry);
  copy(stream, src, dst);
  ASSERT_EQ(stream.ledger().size(), 1U);
  EXPECT_EQ(stream.ledger()[0].bytes, 40);
}

}  // namespace
}  // namespace lockstep::kernels::copy_test
