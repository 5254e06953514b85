#include "core/cuda/stream.h"

#include "core/cuda/range.h"
#include "tests/cuda_runtime/runtime_test.h"

namespace lockstep::stream_test {
namespace {

using namespace testing;

class CudaStream : public RuntimeTest {};

Tensor host_floats(std::initializer_list<float> values) {
  Tensor tensor = Tensor::empty({static_cast<int64_t>(values.size())}, Dtype::kF32);
  std::copy(values.begin(), values.end(), tensor.data<float>());
  return tensor;
}

TEST_F(CudaStream, HasAnOrderOfItsOwnAndAPriority) {
  const Stream normal(Device::kCuda);
  const Stream high(Device::kCuda, 1, false, cuda::Priority::kHigh);
  int of_normal = 1, of_high = 1, least = 1, greatest = 1;
  unsigned flags = 0;
  ASSERT_EQ(cudaDeviceGetStreamPriorityRange(&least, &greatest), cudaSuccess);
  ASSERT_EQ(cudaStreamGetPriority(normal.cuda(), &of_normal), cudaSuccess);
  ASSERT_EQ(cudaStreamGetPriority(high.cuda(), &of_high), cudaSuccess);
  EXPECT_EQ(of_normal, least);
  EXPECT_EQ(of_high, greatest);
  ASSERT_EQ(cudaStreamGetFlags(high.cuda(), &flags), cudaSuccess);
  EXPECT_EQ(flags, static_cast<unsigned>(cudaStreamNonBlocking));
}

TEST_F(CudaStream, OffCudaThereIsNone) {
  Stream stream;
  EXPECT_EQ(stream.cuda(), nullptr);
  stream.synchronize();
}

TEST_F(CudaStream, ItsEndWaitsForItsWork) {
  Stream other(Device::kCuda);
  Tensor tensor = device_floats(5);
  {
    Stream stream(Device::kCuda);
    fill(stream, tensor, 3);
  }
  EXPECT_EQ(to_cpu(other, tensor).data<float>()[4], 3);  // another stream, and no event
}

TEST_F(CudaStream, CopiesOrdinaryMemoryAtOnce) {
  Stream stream(Device::kCuda);
  Tensor host = host_floats({1, 2, 3});
  Tensor device = device_floats(3);
  transfer(stream, host, device);
  host.data<float>()[0] = 9;
  Tensor back = Tensor::empty({3}, Dtype::kF32);
  transfer(stream, device, back);
  EXPECT_EQ(back.data<float>()[0], 1);
}

TEST_F(CudaStream, CopiesPinnedMemoryInItsOrder) {
  Stream stream(Device::kCuda);
  Tensor pinned = cuda::empty_pinned({3}, Dtype::kF32);
  Tensor device = device_floats(3);
  fill(stream, device, 2);
  transfer(stream, device, pinned);
  EXPECT_NE(pinned.data<float>()[0], 2);
  stream.synchronize();
  EXPECT_EQ(pinned.data<float>()[0], 2);
  runtime_counters = {};
  transfer(stream, pinned, device);
  EXPECT_EQ(runtime_counters.synchronizations, 0);
}

TEST_F(CudaStream, CopiesThatAreThereOnReturn) {
  Stream stream(Device::kCuda);
  const Tensor host = host_floats({1, 2, 3, 4});
  const Tensor device = to_device(stream, host.view({2, 2}));
  EXPECT_EQ(device.device(), Device::kCuda);
  EXPECT_EQ(device.shape(), Shape({2, 2}));
  const Tensor back = to_cpu(stream, device);
  EXPECT_EQ(back.shape(), Shape({2, 2}));
  EXPECT_EQ(back.data<float>()[3], 4);
  EXPECT_EQ(to_device(stream, device).bytes(), device.bytes());
  EXPECT_EQ(to_cpu(stream, back).bytes(), back.bytes());
  EXPECT_EQ(to_cpu(stream, device_floats(0)).numel(), 0);
}

TEST_F(CudaStream, RefusesTensorsThatAreNotAlike) {
  Stream stream(Device::kCuda), cpu;
  Tensor device = device_floats(3);
  Tensor dry = Tensor::empty({3}, Dtype::kF32, Device::kDry);
  EXPECT_THROW(transfer(stream, host_floats({1, 2}), device), ShapeError);
  EXPECT_THROW(transfer(stream, Tensor::empty({3}, Dtype::kF16), device), DtypeError);
  EXPECT_THROW(transfer(cpu, host_floats({1, 2, 3}), device), DeviceError);
  EXPECT_THROW(transfer(stream, device, dry), DeviceError);
  EXPECT_THROW((void)to_row_major(device), DeviceError);
}

TEST_F(CudaStream, EventsOrderStreams) {
  Stream first(Device::kCuda), second(Device::kCuda);
  Tensor tensor = device_floats(3);
  cuda::Event event;
  EXPECT_TRUE(event.done());
  event.synchronize();
  event.make_wait(second.cuda());  // never recorded: no wait
  fill(first, tensor, 4);
  event.record(first.cuda());
  event.make_wait(second.cuda());
  EXPECT_EQ(to_cpu(second, tensor).data<float>()[0], 4);
  EXPECT_TRUE(event.done());
}

TEST_F(CudaStream, AskingAnEventLeavesNoError) {
  Stream stream(Device::kCuda);
  Tensor tensor = device_floats(3);
  cuda::Event event;
  fill(stream, tensor, 1);
  event.record(stream.cuda());
  EXPECT_FALSE(event.done());
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  event.synchronize();
  EXPECT_TRUE(event.done());
}

TEST_F(CudaStream, RangesNeedNoProfiler) {
  const cuda::Range range("step");
}

}  // namespace
}  // namespace lockstep::stream_test
