// Streams, events and host functions of the fake runtime: what it promises, and what it does not.
#include "tests/cuda_runtime/runtime_test.h"

namespace lockstep::fake_streams_test {
namespace {

using namespace testing;

class FakeStreams : public RuntimeTest {
 protected:
  Tensor pinned_ = cuda::empty_pinned({4}, Dtype::kF32);
  Tensor tensor_ = device_floats(4);
  Stream first_{Device::kCuda}, second_{Device::kCuda};
};

TEST_F(FakeStreams, LazyRunsOnlyWhatIsWaitedFor) {
  pinned_.data<float>()[0] = -1;
  fill(first_, tensor_, 3);
  transfer(first_, tensor_, pinned_);
  fill(second_, tensor_, 4);
  EXPECT_EQ(pinned_.data<float>()[0], -1);
  first_.synchronize();
  EXPECT_EQ(pinned_.data<float>()[0], 3);
  EXPECT_EQ(cudaStreamQuery(second_.cuda()), cudaErrorNotReady);
}

TEST_F(FakeStreams, AnEventMeansItsLastRecordAtTheTimeOfTheWait) {
  cuda::Event event;
  fill(first_, tensor_, 1);
  event.record(first_.cuda());
  event.make_wait(second_.cuda());
  scale(second_, tensor_, 10);
  fill(first_, tensor_, 2);
  event.record(first_.cuda());  // the second stream waits for the first record still
  transfer(second_, tensor_, pinned_);
  second_.synchronize();
  EXPECT_EQ(pinned_.data<float>()[0], 10);
  EXPECT_FALSE(event.done());
  event.synchronize();
  EXPECT_TRUE(event.done());
}

TEST_F(FakeStreams, WhoeverAsksAgainAndAgainGetsThere) {
  cuda::Event event;
  for (int i = 0; i < 5; ++i) fill(first_, tensor_, 1);
  event.record(first_.cuda());
  int asked = 1;
  while (!event.done()) ++asked;
  EXPECT_GT(asked, 1);
  EXPECT_LT(asked, 20);
  fill(first_, tensor_, 1);
  EXPECT_EQ(cudaStreamQuery(first_.cuda()), cudaErrorNotReady);
  while (cudaStreamQuery(first_.cuda()) != cudaSuccess) ++asked;
}

TEST_F(FakeStreams, RandomOrdersDifferBySeedAndRepeat) {
  const auto last_writer = [&](uint64_t seed) {
    set_stream_order(StreamOrder::kRandom, seed);
    fill(first_, tensor_, 1);
    fill(second_, tensor_, 2);
    first_.synchronize();
    second_.synchronize();
    return to_cpu(first_, tensor_).data<float>()[0];
  };
  int firsts = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const float value = last_writer(seed);
    EXPECT_EQ(last_writer(seed), value) << seed;
    firsts += value == 1 ? 1 : 0;
  }
  EXPECT_GT(firsts, 0);
  EXPECT_LT(firsts, 20);
}

TEST_F(FakeStreams, EndedStreamsStillDoTheirWork) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(tensor_.bytes(), 0, tensor_.nbytes(), stream), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(to_cpu(first_, tensor_).data<float>()[3], 0);
}

TEST_F(FakeStreams, TheDefaultStreamWaitsForBlockingStreamsAndTheyForIt) {
  cudaStream_t blocking = nullptr;
  ASSERT_EQ(cudaStreamCreate(&blocking), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(tensor_.bytes(), 1, 4, blocking), cudaSuccess);
  ASSERT_EQ(cudaMemset(tensor_.bytes(), 2, 4), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(tensor_.bytes() + 1, 3, 1, blocking), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(blocking), cudaSuccess);
  unsigned word = 0;
  ASSERT_EQ(cudaMemcpy(&word, tensor_.bytes(), 4, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(word, 0x02020302U);
  EXPECT_EQ(cudaStreamDestroy(blocking), cudaSuccess);
}

TEST_F(FakeStreams, TimeIsCountedInOperations) {
  cudaEvent_t begin = nullptr, end = nullptr, untimed = nullptr;
  float milliseconds = -1;
  ASSERT_EQ(cudaEventCreate(&begin), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&end), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaErrorInvalidResourceHandle);
  for (cudaEvent_t event : {begin, end, untimed}) {
    ASSERT_EQ(cudaEventRecord(event, first_.cuda()), cudaSuccess);
    fill(first_, tensor_, 1);
  }
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaErrorNotReady);
  first_.synchronize();
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, untimed), cudaErrorInvalidResourceHandle);
  ASSERT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaSuccess);
  EXPECT_FLOAT_EQ(milliseconds, 0.002F);  // a launch and a record
  for (cudaEvent_t event : {begin, end, untimed}) EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(begin), cudaErrorInvalidResourceHandle);
}

TEST_F(FakeStreams, HostFunctionsRunInOrderAndMayNotCallBack) {
  struct Seen {
    int calls = 0;
    cudaError_t status = cudaSuccess;
  } seen;
  const auto function = [](void* argument) {
    auto* const given = static_cast<Seen*>(argument);
    ++given->calls;
    given->status = cudaDeviceSynchronize();
  };
  ASSERT_EQ(cudaLaunchHostFunc(first_.cuda(), function, &seen), cudaSuccess);
  EXPECT_EQ(seen.calls, 0);
  first_.synchronize();
  EXPECT_EQ(seen.calls, 1);
  EXPECT_EQ(seen.status, cudaErrorNotPermitted);
}

TEST_F(FakeStreams, CallsThatMatterAreCounted) {
  runtime_counters = {};
  fill(first_, tensor_, 1);
  transfer(first_, pinned_, tensor_);
  EXPECT_EQ(cudaMemsetAsync(tensor_.bytes(), 0, 4, first_.cuda()), cudaSuccess);
  EXPECT_EQ(runtime_counters.launches, 1);
  EXPECT_EQ(runtime_counters.copies, 1);
  EXPECT_EQ(runtime_counters.copied_bytes, 16);
  EXPECT_EQ(runtime_counters.memsets, 1);
  EXPECT_EQ(runtime_counters.synchronizations, 0);
  (void)to_cpu(first_, tensor_);  // the copy itself waits, then the stream
  EXPECT_EQ(runtime_counters.synchronizations, 2);
}

}  // namespace
}  // namespace lockstep::fake_streams_test
