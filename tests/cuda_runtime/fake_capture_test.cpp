// Capture and graphs of the fake runtime.
#include <thread>

#include "tests/cuda_runtime/runtime_test.h"
#include "tests/emulation/engine.h"

namespace lockstep::fake_capture_test {
namespace {

using namespace testing;

constexpr auto kGlobal = cudaStreamCaptureModeGlobal;
constexpr auto kThreadLocal = cudaStreamCaptureModeThreadLocal;
constexpr auto kRelaxed = cudaStreamCaptureModeRelaxed;

class FakeCapture : public RuntimeTest {
 protected:
  void begin(cudaStreamCaptureMode mode = kThreadLocal) {
    ASSERT_EQ(cudaStreamBeginCapture(first_.cuda(), mode), cudaSuccess);
  }
  cudaError_t end() {
    const cudaError_t status = cudaStreamEndCapture(first_.cuda(), &graph_);
    EXPECT_EQ(graph_ != nullptr, status == cudaSuccess);
    return status;
  }
  void replay(int times) {
    cudaGraphExec_t executable = nullptr;
    ASSERT_EQ(cudaGraphInstantiate(&executable, graph_, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph_), cudaSuccess);
    for (int i = 0; i < times; ++i)
      EXPECT_EQ(cudaGraphLaunch(executable, first_.cuda()), cudaSuccess);
    EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);  // what was launched still runs
  }
  std::vector<float> values() {
    const Tensor values = to_cpu(first_, tensor_);
    return {values.span<float>().begin(), values.span<float>().end()};
  }

  Stream first_{Device::kCuda}, second_{Device::kCuda};
  Tensor tensor_ = device_floats(3);
  cudaGraph_t graph_ = nullptr;
};

TEST_F(FakeCapture, HoldsBackWhatItCapturesAndReplaysIt) {
  fill(first_, tensor_, 1);
  first_.synchronize();
  float factor = 2;
  begin();
  scale(first_, tensor_, factor);
  factor = 5;  // arguments were copied
  scale(first_, tensor_, factor);
  ASSERT_EQ(end(), cudaSuccess);
  EXPECT_EQ(values(), std::vector<float>(3, 1));
  runtime_counters = {};
  const uint64_t grids = emulation::counters.grids;
  replay(2);
  EXPECT_EQ(values(), std::vector<float>(3, 100));
  EXPECT_EQ(runtime_counters.graph_launches, 2);
  EXPECT_EQ(runtime_counters.launches, 0);
  EXPECT_EQ(emulation::counters.grids - grids, 4U);
}

TEST_F(FakeCapture, BranchesRunInAnyOrderThatTheirEdgesAllow) {
  // fill on the first stream, then two branches that do not commute, joined.
  const auto result = [&](StreamOrder order, uint64_t seed) {
    set_stream_order(order, seed);
    cuda::Event forked, joined;
    begin();
    fill(first_, tensor_, 1);
    forked.record(first_.cuda());
    forked.make_wait(second_.cuda());
    scale(second_, tensor_, 3);
    axpy(first_, tensor_, tensor_, 1);  // doubles
    fill(first_, tensor_, 5);
    joined.record(second_.cuda());
    joined.make_wait(first_.cuda());
    EXPECT_EQ(end(), cudaSuccess);
    replay(1);
    return values()[0];
  };
  EXPECT_EQ(result(StreamOrder::kEager, 0), 5);
  bool scaled_last = false, scaled_first = false;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const float value = result(StreamOrder::kRandom, seed);
    EXPECT_TRUE(value == 5 || value == 15) << value;
    (value == 15 ? scaled_last : scaled_first) = true;
  }
  EXPECT_TRUE(scaled_last);
  EXPECT_TRUE(scaled_first);
}

TEST_F(FakeCapture, CopiesAreRepeatedWithWhatIsThere) {
  Tensor pinned = cuda::empty_pinned({3}, Dtype::kF32);
  begin();
  transfer(first_, pinned, tensor_);
  ASSERT_EQ(end(), cudaSuccess);
  pinned.data<float>()[1] = 4;
  replay(1);
  EXPECT_EQ(values()[1], 4);
}

TEST_F(FakeCapture, WorkThatIsNotJoinedIsAnError) {
  cuda::Event forked;
  begin();
  fill(first_, tensor_, 1);
  forked.record(first_.cuda());
  forked.make_wait(second_.cuda());
  fill(second_, tensor_, 2);
  EXPECT_EQ(end(), cudaErrorStreamCaptureUnjoined);
  fill(second_, tensor_, 3);  // both streams work on
  second_.synchronize();
  EXPECT_EQ(values()[0], 3);
}

TEST_F(FakeCapture, ForkWithoutWorkNeedsNoJoin) {
  cuda::Event forked;
  begin();
  fill(first_, tensor_, 1);
  forked.record(first_.cuda());
  forked.make_wait(second_.cuda());
  EXPECT_EQ(end(), cudaSuccess);
}

TEST_F(FakeCapture, ForbiddenCallsEndIt) {
  cudaEvent_t captured = nullptr;
  void* memory = nullptr;
  const auto status_and_end = [&](auto&& call) {
    begin();
    fill(first_, tensor_, 1);
    EXPECT_EQ(cudaEventRecord(captured, first_.cuda()), cudaSuccess);
    const cudaError_t status = call();
    fill(second_, tensor_, 1);  // other streams do not mind
    EXPECT_EQ(cudaMemsetAsync(tensor_.bytes(), 0, 4, first_.cuda()),
              cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
    return status;
  };
  ASSERT_EQ(cudaEventCreate(&captured), cudaSuccess);
  const auto stream = [&] { return first_.cuda(); };
  EXPECT_EQ(status_and_end([&] { return cudaStreamSynchronize(stream()); }),
            cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(status_and_end([&] { return cudaStreamQuery(stream()); }),
            cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(status_and_end([&] { return cudaDeviceSynchronize(); }),
            cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(status_and_end([&] { return cudaMalloc(&memory, 4); }),
            cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(status_and_end([&] { return cudaFree(tensor_.bytes()); }),
            cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(status_and_end([&] { return cudaMemset(tensor_.bytes(), 0, 4); }),
            cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(status_and_end([&] { return cudaEventSynchronize(captured); }), cudaErrorCapturedEvent);
  EXPECT_EQ(status_and_end([&] { return cudaEventQuery(captured); }), cudaErrorCapturedEvent);
  EXPECT_EQ(cudaEventDestroy(captured), cudaSuccess);
}

TEST_F(FakeCapture, WaitingForWhatIsNotCapturedEndsIt) {
  cuda::Event outside;
  outside.record(second_.cuda());
  begin();
  EXPECT_THROW(outside.make_wait(first_.cuda()), EnvironmentError);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(FakeCapture, TwoCapturesDoNotMerge) {
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  begin();
  ASSERT_EQ(cudaStreamBeginCapture(second_.cuda(), kThreadLocal), cudaSuccess);
  fill(second_, tensor_, 1);
  ASSERT_EQ(cudaEventRecord(event, second_.cuda()), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(first_.cuda(), event, 0), cudaErrorStreamCaptureMerge);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamEndCapture(second_.cuda(), &graph_), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamWaitEvent(first_.cuda(), event, 0), cudaErrorCapturedEvent);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST_F(FakeCapture, EndsWhereItBegan) {
  cuda::Event forked;
  EXPECT_EQ(end(), cudaErrorIllegalState);
  begin();
  EXPECT_EQ(cudaStreamBeginCapture(first_.cuda(), kThreadLocal), cudaErrorIllegalState);
  std::thread([&] { EXPECT_EQ(end(), cudaErrorStreamCaptureWrongThread); }).join();
  forked.record(first_.cuda());
  forked.make_wait(second_.cuda());
  EXPECT_EQ(cudaStreamEndCapture(second_.cuda(), &graph_), cudaErrorStreamCaptureUnmatched);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(FakeCapture, ModesSayWhichThreadsMayAllocate) {
  const auto allocate = [] {
    void* memory = nullptr;
    const cudaError_t status = cudaMalloc(&memory, 4);
    if (status == cudaSuccess) {
      cudaStreamCaptureMode mode = kRelaxed;
      cudaThreadExchangeStreamCaptureMode(&mode);
      EXPECT_EQ(cudaFree(memory), cudaSuccess);
      cudaThreadExchangeStreamCaptureMode(&mode);
    }
    return status;
  };
  const auto elsewhere = [&] {
    cudaError_t status = cudaSuccess;
    std::thread([&] { status = allocate(); }).join();
    return status;
  };
  begin(kThreadLocal);
  EXPECT_EQ(elsewhere(), cudaSuccess);
  EXPECT_EQ(end(), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph_), cudaSuccess);

  begin(kGlobal);
  EXPECT_EQ(elsewhere(), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);

  begin(kRelaxed);
  EXPECT_EQ(allocate(), cudaSuccess);
  EXPECT_EQ(end(), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph_), cudaSuccess);
}

TEST_F(FakeCapture, TheDefaultStreamCannotBeCaptured) {
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, kGlobal), cudaErrorStreamCaptureUnsupported);
  cudaStream_t blocking = nullptr;
  ASSERT_EQ(cudaStreamCreate(&blocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(blocking, kThreadLocal), cudaSuccess);
  EXPECT_EQ(cudaMemset(tensor_.bytes(), 0, 4), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(cudaStreamEndCapture(blocking, &graph_), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamDestroy(blocking), cudaSuccess);
}

}  // namespace
}  // namespace lockstep::fake_capture_test
