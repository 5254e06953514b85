#include "core/cuda/watch.h"

#include <thread>

#include <cuda_runtime_api.h>

#include "core/check.h"
#include "core/cuda/graph.h"

namespace lockstep::cuda {
namespace {

Watch* watching = nullptr;

}  // namespace

Watch::Watch(const std::vector<CUstream_st*>& streams) {
  for (CUstream_st* const stream : streams) queues_.push_back({.stream = stream});
  LS_CHECK(watching == nullptr, "[watch] another one lives");
  watching = this;
}

Watch::~Watch() {
  watching = nullptr;
}

void Watch::wait_for_streams() {
  for (const Queue& queue : queues_) wait_watched(queue.stream);
}

// Waits for the launches up to the last mark but one, so twice kLaunches may be queued.
void Watch::limit_queue(CUstream_st* stream) {
  constexpr int kLaunches = 128;
  for (Queue& queue : queues_) {
    if (queue.stream != stream || ++queue.launches < kLaunches || is_recording(stream)) continue;
    queue.launches = 0;
    if (queue.mark) queue.mark->synchronize();
    queue.mark.emplace().record(stream);
  }
}

void Watch::before_end() noexcept {
  try {
    wait_watched_streams();
  } catch (const Error& error) {
    end_process(error);
  }
}

void wait_watched_while(FunctionRef<bool()> is_busy) {
  if (watching == nullptr) return;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  // Short waits cost no sleep; long ones no core.
  constexpr auto kSpin = std::chrono::microseconds(50);
  constexpr auto kSleep = std::chrono::microseconds(20);
  while (is_busy()) {
    const Clock::duration waited = Clock::now() - start;
    watching->look(waited);
    if (waited > kSpin) std::this_thread::sleep_for(kSleep);
  }
  cudaGetLastError();  // clears "not ready"; the caller will get a real failure again
}

void wait_watched(CUstream_st* stream) {
  wait_watched_while([&] { return cudaStreamQuery(stream) == cudaErrorNotReady; });
}

void wait_watched_streams() {
  if (watching != nullptr) watching->wait_for_streams();
}

void limit_queue(CUstream_st* stream) {
  if (watching != nullptr) watching->limit_queue(stream);
}

void tell_watch_of_end() noexcept {
  if (watching != nullptr) watching->before_end();
}

}  // namespace lockstep::cuda
