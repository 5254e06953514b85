#include "kernels/reduce/tensor_digests.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "tests/reference/tensor_digests.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::tensor_digests_test {
namespace {

using testing::random_tensor;

uint64_t specified(const Tensor& tensor) {
  return reference::tensor_digest({tensor.bytes(), tensor.nbytes()});
}

std::vector<uint64_t> digests_of(Stream& stream, const std::vector<Tensor>& tensors) {
  Tensor digests = Tensor::zeros({static_cast<int64_t>(tensors.size())}, Dtype::kI64);
  tensor_digests(stream, tensors, digests);
  const std::span<const int64_t> values = digests.span<const int64_t>();
  return {values.begin(), values.end()};
}

// `size` bytes of no pattern.
Tensor bytes_of(int64_t size) {
  Tensor tensor = Tensor::empty({size}, Dtype::kU8);
  for (int64_t i = 0; i < size; ++i)
    tensor.data<uint8_t>()[i] = static_cast<uint8_t>(i * i + 7 * i + 3);
  return tensor;
}

TEST(TensorDigests, AreAsSpecifiedOnAnyNumberOfThreads) {
  std::vector<Tensor> tensors;
  for (const int64_t size : {0, 1, 2, 7, 8, 9, 15, 16, 65535, 65536, 65539, 400001})
    tensors.push_back(bytes_of(size));
  tensors.push_back(random_tensor({33, 7}, 1));
  tensors.push_back(Tensor::zeros({5}, Dtype::kBF16));
  tensors.push_back(bytes_of(40).slice(3, 29));
  std::vector<uint64_t> want;
  for (const Tensor& tensor : tensors) want.push_back(specified(tensor));
  for (const int threads : {1, 2, 3}) {
    Stream stream(Device::kCpu, threads);
    EXPECT_EQ(digests_of(stream, tensors), want) << threads << " threads";
  }
}

TEST(TensorDigests, BeginAsSplitMix64Does) {
  Stream stream;
  EXPECT_EQ(digests_of(stream, {Tensor::zeros({0}, Dtype::kF32)}),
            std::vector<uint64_t>{0xe220a8397b1dcdaf});
}

TEST(TensorDigests, TellApartWhatDiffers) {
  Stream stream;
  std::set<uint64_t> seen;
  for (int64_t size = 0; size < 40; ++size) {  // zeros of any length
    const Tensor zeros = Tensor::zeros({size}, Dtype::kU8);
    EXPECT_TRUE(seen.insert(digests_of(stream, {zeros})[0]).second) << size;
  }
  for (int64_t bit = 0; bit < 8 * 40; ++bit) {  // one bit anywhere
    Tensor tensor = Tensor::zeros({40}, Dtype::kU8);
    tensor.data<uint8_t>()[bit / 8] = static_cast<uint8_t>(1U << (bit % 8));
    EXPECT_TRUE(seen.insert(digests_of(stream, {tensor})[0]).second) << bit;
  }
  for (int64_t word = 1; word < 5; ++word) {  // two words exchanged
    Tensor tensor = Tensor::zeros({5}, Dtype::kI64);
    for (int64_t i = 0; i < 5; ++i) tensor.data<int64_t>()[i] = i + 100;
    std::swap(tensor.data<int64_t>()[0], tensor.data<int64_t>()[word]);
    EXPECT_TRUE(seen.insert(digests_of(stream, {tensor})[0]).second) << word;
  }
}

TEST(TensorDigests, InstructionSetsAgree) {
  Stream stream;
  const Tensor tensor = bytes_of(1003);
  for (TensorDigests* body : LS_ISA_BODIES(tensor_digests)) {
    Tensor digests = Tensor::zeros({1}, Dtype::kI64);
    body(stream, {&tensor, 1}, digests);
    EXPECT_EQ(static_cast<uint64_t>(*digests.data<int64_t>()), specified(tensor));
  }
}

TEST(TensorDigests, RejectsBadArguments) {
  Stream stream;
  const Tensor tensor = Tensor::zeros({3}, Dtype::kF32);
  Tensor floats = Tensor::zeros({1}, Dtype::kF32);
  Tensor two = Tensor::zeros({2}, Dtype::kI64);
  EXPECT_THROW(tensor_digests(stream, {&tensor, 1}, floats), DtypeError);
  try {
    tensor_digests(stream, {&tensor, 1}, two);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "[tensor_digests] digests: shape (2), expected (1)");
  }
}

TEST(TensorDigests, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  const Tensor tensor = Tensor::empty({10}, Dtype::kF32, Device::kDry);
  Tensor digests = Tensor::empty({1}, Dtype::kI64, Device::kDry);
  tensor_digests(stream, {&tensor, 1}, digests);
  ASSERT_EQ(stream.ledger().size(), 1U);
  EXPECT_EQ(stream.ledger()[0].bytes, 48);
}

}  // namespace
}  // namespace lockstep::kernels::tensor_digests_test
