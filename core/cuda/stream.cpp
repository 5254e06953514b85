#include "core/cuda/stream.h"

#include <cuda_runtime_api.h>

#include "core/cuda/device.h"
#include "core/cuda/error.h"
#include "core/cuda/watch.h"

namespace lockstep::cuda {

std::shared_ptr<CUstream_st> make_stream(Priority priority) {
  ensure_device();
  int lowest = 0, highest = 0;
  check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "stream");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(
            &stream, cudaStreamNonBlocking, priority == Priority::kHigh ? highest : lowest),
        "stream");
  return {stream, [](cudaStream_t ended) {
            tell_watch_of_end();
            cudaStreamSynchronize(ended);  // its scratch memory is about to be reused
            cudaStreamDestroy(ended);
          }};
}

void synchronize(CUstream_st* stream) {
  wait_watched(stream);
  check(cudaStreamSynchronize(stream), "synchronize");
}

void copy_bytes(CUstream_st* stream, void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "copy");
}

Event::Event() {
  ensure_device();
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "event");
  event_ = {event, [](cudaEvent_t ended) { cudaEventDestroy(ended); }};
}

void Event::record(CUstream_st* stream) {
  check(cudaEventRecord(event_.get(), stream), "event");
}

void Event::make_wait(CUstream_st* stream) const {
  check(cudaStreamWaitEvent(stream, event_.get(), 0), "event");
}

bool Event::done() const {
  return is_done(cudaEventQuery(event_.get()));
}

void Event::synchronize() const {
  wait_watched_while([&] { return cudaEventQuery(event_.get()) == cudaErrorNotReady; });
  check(cudaEventSynchronize(event_.get()), "event");
}

}  // namespace lockstep::cuda
