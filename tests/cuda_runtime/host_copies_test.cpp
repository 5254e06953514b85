// Copies that the host asks for without a stream: when they return, and who sees them then.
#include <array>

#include "tests/cuda_runtime/runtime_test.h"

namespace lockstep::host_copies_test {
namespace {

using namespace testing;

class HostCopies : public RuntimeTest {
 protected:
  HostCopies() {
    fill(stream_, tensor_, kBefore);
    stream_.synchronize();
  }
  // Returns the first value that a stream of ours reads from `tensor_` now.
  float seen_by_a_stream() {
    transfer(stream_, tensor_, pinned_);
    stream_.synchronize();
    return pinned_.data<float>()[0];
  }

  static constexpr float kBefore = -1;
  Stream stream_{Device::kCuda};
  Tensor tensor_ = device_floats(1), other_ = device_floats(1);
  Tensor pinned_ = cuda::empty_pinned({1}, Dtype::kF32);
};

// The fake, as NVIDIA documents it: the bytes are staged on return, and no more.
TEST_F(HostCopies, FromOrdinaryMemoryABareCopyReturnsEarly) {
  float one = 1;
  ASSERT_EQ(cudaMemcpy(tensor_.bytes(), &one, sizeof(one), cudaMemcpyDefault), cudaSuccess);
  one = 2;
  EXPECT_EQ(seen_by_a_stream(), kBefore);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(seen_by_a_stream(), 1);
}

TEST_F(HostCopies, WithinADeviceABareCopyDoesNotWait) {
  fill(stream_, other_, 3);
  stream_.synchronize();
  ASSERT_EQ(cudaMemcpy(tensor_.bytes(), other_.bytes(), sizeof(float), cudaMemcpyDefault),
            cudaSuccess);
  EXPECT_EQ(seen_by_a_stream(), kBefore);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(seen_by_a_stream(), 3);
}

TEST_F(HostCopies, FromAndToPageLockedMemoryTheyAreDoneOnReturn) {
  pinned_.data<float>()[0] = 4;
  ASSERT_EQ(cudaMemcpy(tensor_.bytes(), pinned_.bytes(), sizeof(float), cudaMemcpyDefault),
            cudaSuccess);
  EXPECT_EQ(seen_by_a_stream(), 4);
  pinned_.data<float>()[0] = 5;
  ASSERT_EQ(cudaMemcpy(pinned_.bytes(), tensor_.bytes(), sizeof(float), cudaMemcpyDefault),
            cudaSuccess);
  EXPECT_EQ(pinned_.data<float>()[0], 4);
}

// Ours, from a temporary that has ended when a stream reads the copy, and within the device.
TEST_F(HostCopies, CopiesWhenIdleAreThereOnReturn) {
  const auto expect_copies = [&] {
    Tensor value = Tensor::empty({1}, Dtype::kF32);
    value.data<float>()[0] = 6;
    tensor_ = to_device(Device::kCuda, value);
    value.data<float>()[0] = 7;
    EXPECT_EQ(seen_by_a_stream(), 6);
    overwrite(tensor_, other_);
    transfer(stream_, other_, pinned_);
    stream_.synchronize();
    EXPECT_EQ(pinned_.data<float>()[0], 6);
    fill(stream_, tensor_, 0);
    fill(stream_, other_, 0);
  };
  expect_copies();
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    set_stream_order(StreamOrder::kRandom, seed);
    expect_copies();
  }
}

}  // namespace
}  // namespace lockstep::host_copies_test
