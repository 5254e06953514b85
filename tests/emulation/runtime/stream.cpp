// The API's functions for streams.
#include "tests/emulation/runtime/capture.h"
#include "tests/emulation/runtime/state.h"

using namespace lockstep::emulation;

namespace {

// Calls body(stream) if the handle is valid.
template <class Body>
cudaError_t with_stream(cudaStream_t handle, Body&& body) {
  return api([&] {
    CUstream_st* const stream = state().queues.find(handle);
    return stream == nullptr ? cudaErrorInvalidResourceHandle : body(*stream);
  });
}

// A stream that is capturing can be neither waited for nor queried.
cudaError_t refuse_capturing(CUstream_st& stream) {
  invalidate(stream);
  return stream.capture ? cudaErrorStreamCaptureUnsupported : refuse_while_capturing();
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* handle, unsigned flags, int priority) {
  return api([&] {
    if ((flags & ~static_cast<unsigned>(cudaStreamNonBlocking)) != 0) return cudaErrorInvalidValue;
    *handle = &state().queues.create(this_thread().device, flags, std::clamp(priority, -5, 0));
    return cudaSuccess;
  });
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* handle, unsigned flags) {
  return cudaStreamCreateWithPriority(handle, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t* handle) {
  return cudaStreamCreateWithFlags(handle, cudaStreamDefault);
}
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return release([&] {
    CUstream_st* const stream = state().queues.find(handle);
    if (handle == nullptr || stream == nullptr) return cudaErrorInvalidResourceHandle;
    state().queues.destroy(*stream);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  return with_stream(handle, [&](const CUstream_st& stream) {
    *priority = stream.priority;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
  return with_stream(handle, [&](const CUstream_st& stream) {
    *flags = stream.flags;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return with_stream(handle, [&](CUstream_st& stream) {
    if (const cudaError_t status = refuse_capturing(stream); status != cudaSuccess) return status;
    ++runtime_counters.synchronizations;
    state().queues.finish(stream);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return with_stream(handle, [&](CUstream_st& stream) {
    if (const cudaError_t status = refuse_capturing(stream); status != cudaSuccess) return status;
    if (stream.queue.empty()) return cudaSuccess;
    state().queues.advance(stream);
    return cudaErrorNotReady;
  });
}
cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* argument) {
  return with_stream(handle, [&](CUstream_st& stream) {
    return submit(stream, [=] {
      state().in_host_function = true;
      function(argument);
      state().in_host_function = false;
    });
  });
}

}  // extern "C"
