// The state of the fake runtime, and the wrapper of every function of its API.
#pragma once

#include <mutex>

#include <cuda_runtime_api.h>

#include "tests/emulation/runtime/capture.h"
#include "tests/emulation/runtime/fake_runtime.h"
#include "tests/emulation/runtime/handles.h"
#include "tests/emulation/runtime/heap.h"
#include "tests/emulation/runtime/queues.h"

struct CUgraph_st {
  std::shared_ptr<const lockstep::emulation::GraphNodes> nodes;
};
struct CUgraphExec_st {
  std::shared_ptr<const lockstep::emulation::GraphNodes> nodes;
  bool own_priorities = false;  // nodes keep their priorities; else they have the launch stream's
};

namespace lockstep::emulation {

struct State {
  std::recursive_mutex mutex;  // recursive: a host function may call the API, which refuses
  FakeMachine machine;
  cudaError_t sticky = cudaSuccess;  // the fault after which the device is lost
  bool in_host_function = false;
  Heap heap;
  Queues queues;
  Handles<CUevent_st> events;
  Handles<CUgraph_st> graphs;
  Handles<CUgraphExec_st> executables;
  std::set<EventWait> event_waits, forgotten;
};
State& state();

struct ThreadState {
  int device = 0;
  cudaError_t last = cudaSuccess;  // for cudaGetLastError
  cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
};
ThreadState& this_thread();

// Success, or the reason that every call fails: no driver, no device, or a call from a host
// function.
cudaError_t refusal();
// Returns the status, and stores a failure for cudaGetLastError.
cudaError_t returned(cudaError_t status);
// Runs queued work. After a Fault the device is lost and runs no more work.
void run_on_device(const std::function<void()>& work);

// Runs a function of the API: one at a time, and none after a fault.
template <class Body>
cudaError_t api(Body&& body) {
  const std::lock_guard lock(state().mutex);
  cudaError_t status = refusal();
  if (status == cudaSuccess) status = state().sticky;
  if (status == cudaSuccess) status = body();
  return returned(status);
}
// Runs an API function that releases something. It does so even after the device is lost.
template <class Body>
cudaError_t release(Body&& body) {
  const std::lock_guard lock(state().mutex);
  const cudaError_t status = refusal();
  return returned(status == cudaSuccess ? body() : status);
}

}  // namespace lockstep::emulation
