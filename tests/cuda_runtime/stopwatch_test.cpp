#include "core/cuda/stopwatch.h"

#include "tests/cuda_runtime/runtime_test.h"

namespace lockstep::stopwatch_test {
namespace {

using namespace testing;

class CudaStopwatch : public RuntimeTest {};

TEST_F(CudaStopwatch, RunsWhatItTimes) {
  Stream stream(Device::kCuda);
  Tensor tensor = device_floats(4);
  fill(stream, tensor, 1);
  int queued = 0;
  const double time = cuda::median_microseconds(stream.cuda(), [&] {
    ++queued;
    scale(stream, tensor, 2);
  });
  EXPECT_EQ(queued, 2);  // once to warm up, once for the graph
  EXPECT_GE(time, 0);
  EXPECT_EQ(to_cpu(stream, tensor).data<float>()[3], 512);  // a warm-up, 8 launches: 2^9
}

TEST_F(CudaStopwatch, WhatCannotBeQueuedIsTheCallersError) {
  Stream stream(Device::kCuda);
  const auto refuse = [] { throw EnvironmentError("no engine"); };
  EXPECT_THROW(cuda::median_microseconds(stream.cuda(), refuse), EnvironmentError);
  int queued = 0;
  const auto refuse_later = [&] {
    if (++queued == 2) throw EnvironmentError("no engine");
  };
  EXPECT_THROW(cuda::median_microseconds(stream.cuda(), refuse_later), EnvironmentError);
  Tensor tensor = device_floats(4);  // the stream is of use
  fill(stream, tensor, 3);
  EXPECT_EQ(to_cpu(stream, tensor).data<float>()[0], 3);
}

}  // namespace
}  // namespace lockstep::stopwatch_test
