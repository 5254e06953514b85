#include "core/cuda/watch.h"

#include <thread>
#include <utility>

#include <cuda_runtime_api.h>

#include "core/check.h"

namespace lockstep::cuda {
namespace {

Watch* watching = nullptr;

}  // namespace

Watch::Watch(std::vector<CUstream_st*> streams) : streams_(std::move(streams)) {
  LS_CHECK(watching == nullptr, "[watch] another one lives");
  watching = this;
}

Watch::~Watch() {
  watching = nullptr;
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
  if (watching == nullptr) return;
  for (CUstream_st* const stream : watching->streams()) wait_watched(stream);
}

void tell_watch_of_end() noexcept {
  if (watching != nullptr) watching->before_end();
}

}  // namespace lockstep::cuda
