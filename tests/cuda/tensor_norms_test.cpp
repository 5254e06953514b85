#include "kernels/reduce/tensor_norms.h"

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"
#include "tests/support/norm_probe.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::tensor_norms_test {
namespace {

using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;

class CudaTensorNorms : public testing::CudaTest {
 protected:
  void expect_the_cpus_bits(const std::vector<Tensor>& tensors, bool aligned = true) {
    Stream cpu;
    const Shape shape = {static_cast<int64_t>(tensors.size()) + 1};
    Tensor want = poisoned_tensor(shape, Dtype::kF32);
    tensor_norms(cpu, tensors, want);
    Tensor got = poisoned(shape, Dtype::kF32);
    tensor_norms(stream_, uploaded(tensors, aligned), got);
    EXPECT_TRUE(same_bits(download(got), want)) << (aligned ? "aligned" : "misaligned");
  }

  std::vector<Tensor> uploaded(const std::vector<Tensor>& tensors, bool aligned) {
    std::vector<Tensor> there;
    for (const Tensor& tensor : tensors)
      there.push_back(aligned ? upload(tensor) : upload_misaligned(tensor));
    return there;
  }
};

TEST_F(CudaTensorNorms, GiveTheCpusBits) {
  for (const Dtype dtype : kFloatTypes) {
    std::vector<Tensor> tensors;
    for (const int64_t length : {1, 0, 3, 5, 1023, 1025, 2051})
      tensors.push_back(rounded_to(dtype, random_tensor({length}, tensors.size() + 1)));
    for (const bool aligned : {true, false}) expect_the_cpus_bits(tensors, aligned);
  }
}

TEST_F(CudaTensorNorms, AddInTheCpusOrder) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Dtype dtype = kFloatTypes[seed % 3];
    expect_the_cpus_bits(testing::norm_probe(dtype, {4096}, seed), seed % 2 == 0);
    expect_the_cpus_bits(testing::norm_probe(dtype, {4096, 70, 3, 500, 90}, seed));
  }
  for (uint64_t seed = 0; seed < 6; ++seed)
    expect_the_cpus_bits(testing::norm_probe(Dtype::kF16, {3 * kNormChunk}, seed));
}

TEST_F(CudaTensorNorms, GiveTheCpusBitsOverSeveralChunks) {
  for (const bool aligned : {true, false}) {
    expect_the_cpus_bits({random_tensor({2 * kNormChunk + 1021}, 1),
                          rounded_to(Dtype::kF16, random_tensor({2 * kNormChunk}, 2)),
                          rounded_to(Dtype::kBF16, random_tensor({kNormChunk + 1}, 3))},
                         aligned);
  }
}

TEST_F(CudaTensorNorms, GiveTheCpusBitsForMoreTensorsThanATableHolds) {
  std::vector<Tensor> tensors;
  for (uint64_t i = 0; i < 203; ++i) tensors.push_back(random_tensor({3}, i));
  expect_the_cpus_bits(tensors);
}

TEST_F(CudaTensorNorms, OfNoTensorsIsZero) {
  expect_the_cpus_bits({});
}

TEST_F(CudaTensorNorms, SayWhatIsNotFinite) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const float bad : {kInf, kNan}) {
    Tensor spoiled = random_tensor({3000}, 1);
    spoiled.span<float>()[2999] = bad;
    const std::vector<Tensor> tensors = {upload(Tensor::zeros({3}, Dtype::kF32)), upload(spoiled)};
    Tensor norms = poisoned({3}, Dtype::kF32);
    tensor_norms(stream_, tensors, norms);
    const Tensor got = download(norms);
    EXPECT_EQ(got.span<const float>()[0], 0);
    for (const size_t i : {1U, 2U}) {
      const float norm = got.span<const float>()[i];
      EXPECT_TRUE(std::isnan(bad) ? std::isnan(norm) : norm == kInf) << norm;
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels::tensor_norms_test
