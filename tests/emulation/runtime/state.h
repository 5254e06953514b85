// State of the fake runtime, and the way that every function of its API takes.
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
  bool own_priorities = false;  // of the nodes; else they have the launch stream's
};

namespace lockstep::emulation {

struct State {
  std::recursive_mutex mutex;  // a host function may call back; it is refused
  FakeMachine machine;
  cudaError_t sticky = cudaSuccess;  // the fault that lost the device
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

// Success, or why no call can do anything: no driver, no device, inside a host function.
cudaError_t refusal();
// Keeps a failure for cudaGetLastError.
cudaError_t returned(cudaError_t status);
// Runs `work` of a queue. A Fault, or an earlier one, is the end of the device.
void run_on_device(const std::function<void()>& work);

// A function of the API: one at a time, and none after a fault.
template <class Body>
cudaError_t api(Body&& body) {
  const std::lock_guard lock(state().mutex);
  cudaError_t status = refusal();
  if (status == cudaSuccess) status = state().sticky;
  if (status == cudaSuccess) status = body();
  return returned(status);
}
// One that gives something back: it does so even when the device is lost.
template <class Body>
cudaError_t release(Body&& body) {
  const std::lock_guard lock(state().mutex);
  const cudaError_t status = refusal();
  return returned(status == cudaSuccess ? body() : status);
}

}  // namespace lockstep::emulation
