#include "core/cuda/stopwatch.h"

#include <algorithm>
#include <array>

#include <cuda_runtime_api.h>

#include "core/cuda/device.h"
#include "core/cuda/error.h"
#include "core/cuda/graph.h"
#include "core/cuda/stream.h"

namespace lockstep::cuda {
namespace {

constexpr size_t kRounds = 7;

}  // namespace

Mark::Mark() {
  ensure_device();
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "stopwatch");
  event_ = {event, [](cudaEvent_t ended) { cudaEventDestroy(ended); }};
}

void Mark::record(CUstream_st* stream) {
  check(cudaEventRecord(event_.get(), stream), "stopwatch");
}

double Mark::microseconds_since(const Mark& earlier) const {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, earlier.event_.get(), event_.get()), "stopwatch");
  return 1e3 * static_cast<double>(milliseconds);
}

double median_microseconds(CUstream_st* stream, FunctionRef<void()> queue) {
  queue();
  const Graph graph = Graph::record(stream, queue);
  graph.launch(stream);  // the first launch uploads the graph to the device
  std::array<Mark, kRounds + 1> marks;
  marks[0].record(stream);
  for (size_t i = 1; i <= kRounds; ++i) {
    graph.launch(stream);
    marks[i].record(stream);
  }
  synchronize(stream);
  std::array<double, kRounds> times{};
  for (size_t i = 0; i < kRounds; ++i) times[i] = marks[i + 1].microseconds_since(marks[i]);
  std::ranges::nth_element(times, times.begin() + kRounds / 2);
  return times[kRounds / 2];
}

}  // namespace lockstep::cuda
