// A program as training is: batches copied beside the compute stream, gradients exchanged on a
// third, the step replayed as a graph. Right, it passes in every order of streams; with any of the
// mistakes that streams invite, it must not.
#include <algorithm>
#include <array>
#include <optional>

#include "core/cuda/error.h"
#include "tests/cuda_runtime/runtime_test.h"

namespace lockstep::planted_bugs_test {
namespace {

using namespace testing;

enum class Bug : uint8_t {
  kNone,
  kNoWaitForTheCopy,        // the step does not wait for its batch
  kReadTooEarly,            // the result is read before the stream is done
  kPinnedRefilledTooEarly,  // the next batch is written while the last is still being copied
  kMemoryReusedTooEarly,    // another stream takes memory that the first still uses
  kBareCopy,                // a stream reads what the host has just copied to the device
  kUnjoinedCapture,         // the exchange is not waited for before the capture ends
  kSynchronizeInCapture,
};

constexpr int64_t kCount = 150;
constexpr int kSteps = 4;

struct Results {
  std::array<float, kCount> state{}, sum{};
  bool operator==(const Results&) const = default;
};

float pixel(int step, int64_t i) {
  return static_cast<float>(i % 7 + step);
}

Results expected() {
  Results results;
  for (int step = 0; step < kSteps; ++step) {
    for (size_t i = 0; i < kCount; ++i) {
      results.state[i] = (results.state[i] + 0.5F * pixel(step, static_cast<int64_t>(i))) * 2;
      results.sum[i] += results.state[i];
    }
  }
  return results;
}

class Program {
 public:
  explicit Program(Bug bug) : bug_(bug) {
    for (Tensor* tensor : {&state_, &sum_}) fill(compute_, *tensor, 0);
    compute_.synchronize();
  }
  ~Program() {
    if (step_ != nullptr) cudaGraphExecDestroy(step_);
  }

  bool is_right() {
    capture();
    for (int step = 0; step < kSteps; ++step) run(step);
    return read() == expected() && keeps_its_memory() && reads_what_the_host_copied();
  }

 private:
  bool has(Bug bug) const { return bug_ == bug; }

  // state = (state + batch / 2) * 2 across two streams, then sum += state.
  void capture() {
    cudaGraph_t graph = nullptr;
    cuda::check(cudaStreamBeginCapture(compute_.cuda(), cudaStreamCaptureModeThreadLocal),
                "capture");
    axpy(compute_, state_, batch_, 0.5F);
    computed_.record(compute_.cuda());
    computed_.make_wait(exchange_.cuda());
    scale(exchange_, state_, 2);
    if (has(Bug::kSynchronizeInCapture)) exchange_.synchronize();
    exchanged_.record(exchange_.cuda());
    if (!has(Bug::kUnjoinedCapture)) exchanged_.make_wait(compute_.cuda());
    axpy(compute_, sum_, state_, 1);
    cuda::check(cudaStreamEndCapture(compute_.cuda(), &graph), "capture");
    cuda::check(cudaGraphInstantiate(&step_, graph, 0), "capture");
    cudaGraphDestroy(graph);
  }

  void run(int step) {
    if (!has(Bug::kPinnedRefilledTooEarly)) copied_.synchronize();
    for (int64_t i = 0; i < kCount; ++i) pinned_.data<float>()[i] = pixel(step, i);
    stepped_.make_wait(copy_.cuda());
    transfer(copy_, pinned_, batch_);
    copied_.record(copy_.cuda());
    if (!has(Bug::kNoWaitForTheCopy)) copied_.make_wait(compute_.cuda());
    cuda::check(cudaGraphLaunch(step_, compute_.cuda()), "step");
    stepped_.record(compute_.cuda());
  }

  Results read() {
    Results results;
    Tensor pinned = cuda::empty_pinned({2, kCount}, Dtype::kF32);
    Tensor state = pinned.slice(0, 1).view({kCount});
    Tensor sum = pinned.slice(1, 1).view({kCount});
    transfer(compute_, state_, state);
    transfer(compute_, sum_, sum);
    if (!has(Bug::kReadTooEarly)) compute_.synchronize();
    std::copy_n(state.data<float>(), kCount, results.state.begin());
    std::copy_n(sum.data<float>(), kCount, results.sum.begin());
    return results;
  }

  // What one stream gives back, another one gets from the cache: in time, or too early.
  bool keeps_its_memory() {
    {
      Tensor scratch = device_floats(kCount);
      fill(compute_, scratch, 1);
      axpy(compute_, sum_, scratch, 1);
      computed_.record(compute_.cuda());
    }
    if (!has(Bug::kMemoryReusedTooEarly)) computed_.make_wait(exchange_.cuda());
    Tensor kept = device_floats(kCount);
    fill(exchange_, kept, 7);
    exchange_.synchronize();
    compute_.synchronize();
    const Tensor values = to_cpu(exchange_, kept);
    return std::ranges::all_of(values.span<float>(), [](float value) { return value == 7; });
  }

  bool reads_what_the_host_copied() {
    Tensor twos = Tensor::empty({kCount}, Dtype::kF32);
    std::ranges::fill(twos.span<float>(), 2.0F);
    if (has(Bug::kBareCopy)) {
      cuda::check(cudaMemcpy(state_.bytes(), twos.bytes(), twos.nbytes(), cudaMemcpyDefault),
                  "copy");
    } else {
      overwrite(twos, state_);
    }
    return to_cpu(compute_, state_).span<float>().back() == 2;
  }

  const Bug bug_;
  Stream compute_{Device::kCuda}, exchange_{Device::kCuda}, copy_{Device::kCuda};
  cuda::Event computed_, exchanged_, copied_, stepped_;
  Tensor batch_ = device_floats(kCount), state_ = device_floats(kCount);
  Tensor sum_ = device_floats(kCount);
  Tensor pinned_ = cuda::empty_pinned({kCount}, Dtype::kF32);
  cudaGraphExec_t step_ = nullptr;
};

// True when the program's results are right. Otherwise `error` is what stopped it, if anything did.
bool passes(Bug bug, StreamOrder order, uint64_t seed, cudaError_t& error) {
  reset_runtime();
  set_stream_order(order, seed);
  error = cudaSuccess;
  try {
    return Program(bug).is_right();
  } catch (const cuda::CudaError& stopped) {
    error = stopped.status();
    return false;
  }
}

struct Expectation {
  const char* name;
  Bug bug;
  cudaError_t error = cudaSuccess;  // that every order must give
};

class PlantedBugs : public RuntimeTest, public ::testing::WithParamInterface<Expectation> {};

constexpr uint64_t kSeeds = 40;

TEST_P(PlantedBugs, AreCaught) {
  const auto& [name, bug, wanted] = GetParam();
  cudaError_t error = cudaSuccess;
  if (wanted != cudaSuccess) {
    EXPECT_FALSE(passes(bug, StreamOrder::kEager, 0, error));
    EXPECT_EQ(error, wanted);
  }
  EXPECT_FALSE(passes(bug, StreamOrder::kLazy, 0, error));
  EXPECT_EQ(error, wanted);
  uint64_t caught = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    if (passes(bug, StreamOrder::kRandom, seed, error)) continue;
    ++caught;
    EXPECT_EQ(error, wanted) << "seed " << seed;
  }
  EXPECT_GE(caught, wanted == cudaSuccess ? kSeeds / 10 : kSeeds);
  RecordProperty("caught_seeds", static_cast<int>(caught));
}
INSTANTIATE_TEST_SUITE_P(
    Runtime,
    PlantedBugs,
    ::testing::Values(
        Expectation{"NoWaitForTheCopy", Bug::kNoWaitForTheCopy},
        Expectation{"ReadTooEarly", Bug::kReadTooEarly},
        Expectation{"PinnedRefilledTooEarly", Bug::kPinnedRefilledTooEarly},
        Expectation{"MemoryReusedTooEarly", Bug::kMemoryReusedTooEarly},
        Expectation{"BareCopy", Bug::kBareCopy},
        Expectation{"UnjoinedCapture", Bug::kUnjoinedCapture, cudaErrorStreamCaptureUnjoined},
        Expectation{
            "SynchronizeInCapture", Bug::kSynchronizeInCapture, cudaErrorStreamCaptureUnsupported}),
    [](const auto& made) { return std::string(made.param.name); });

class CorrectProgram : public RuntimeTest {};

TEST_F(CorrectProgram, PassesInEveryOrder) {
  cudaError_t error = cudaSuccess;
  EXPECT_TRUE(passes(Bug::kNone, StreamOrder::kEager, 0, error)) << error;
  EXPECT_TRUE(passes(Bug::kNone, StreamOrder::kLazy, 0, error)) << error;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed)
    EXPECT_TRUE(passes(Bug::kNone, StreamOrder::kRandom, seed, error)) << "seed " << seed;
}

}  // namespace
}  // namespace lockstep::planted_bugs_test
