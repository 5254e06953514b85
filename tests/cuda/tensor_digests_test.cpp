#include "kernels/reduce/tensor_digests.h"

#include <vector>

#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::tensor_digests_test {
namespace {

using testing::poisoned_tensor;
using testing::random_tensor;
using testing::same_bits;

class CudaTensorDigests : public testing::CudaTest {
 protected:
  void expect_the_cpus_bits(const std::vector<Tensor>& tensors, bool aligned = true) {
    Stream cpu;
    const Shape shape = {static_cast<int64_t>(tensors.size())};
    Tensor want = poisoned_tensor(shape, Dtype::kI64);
    tensor_digests(cpu, tensors, want);
    std::vector<Tensor> there;
    for (const Tensor& tensor : tensors)
      there.push_back(aligned ? upload(tensor) : upload_misaligned(tensor));
    Tensor got = poisoned(shape, Dtype::kI64);
    tensor_digests(stream_, there, got);
    EXPECT_TRUE(same_bits(download(got), want)) << (aligned ? "aligned" : "misaligned");
  }

  static Tensor bytes_of(int64_t size) {
    Tensor tensor = Tensor::empty({size}, Dtype::kU8);
    for (int64_t i = 0; i < size; ++i)
      tensor.data<uint8_t>()[i] = static_cast<uint8_t>(i * i + 7 * i + 3);
    return tensor;
  }
};

TEST_F(CudaTensorDigests, GiveTheCpusBits) {
  const std::vector<Tensor> tensors = {bytes_of(1),
                                       bytes_of(0),
                                       bytes_of(8),
                                       bytes_of(15),
                                       bytes_of(16),
                                       bytes_of(4099),
                                       random_tensor({3, 5, 7}, 1),
                                       Tensor::zeros({17}, Dtype::kBF16),
                                       Tensor::zeros({3}, Dtype::kI64)};
  for (const bool aligned : {true, false}) expect_the_cpus_bits(tensors, aligned);
}

TEST_F(CudaTensorDigests, GiveTheCpusBitsOverSeveralChunks) {
  expect_the_cpus_bits({bytes_of(65536), bytes_of(2 * 65536 + 4097), bytes_of(65535)});
  expect_the_cpus_bits({random_tensor({16384 + 9}, 2)}, false);
}

TEST_F(CudaTensorDigests, GiveTheCpusBitsForMoreTensorsThanATableHolds) {
  std::vector<Tensor> tensors;
  for (int64_t i = 0; i < 203; ++i) tensors.push_back(bytes_of(i % 37));
  expect_the_cpus_bits(tensors);
}

TEST_F(CudaTensorDigests, OfNoTensorsAreNone) {
  expect_the_cpus_bits({});
}

}  // namespace
}  // namespace lockstep::kernels::tensor_digests_test
