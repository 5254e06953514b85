// The cuDNN functions that Lockstep calls. They exist on the emulated machine if
// LOCKSTEP_EMULATION_CUDNN is set to "on" or to a fault:
//   old-version, newer-version, other-cuda, lacks-a-function   faults of the library
//   no-engine, no-engine:f16             the heuristics find no engine, for any type or for f16
//   refuses-plans                        plans of the engine with knobs cannot be finalized
//   fails-to-execute, fails-with-knobs   every execution fails, or only that engine's
//   overruns-workspace, wrong-result     an execution writes bad data
// They guarantee no more than cuDNN does: sums are in the order of the engine and its knobs,
// workspaces hold garbage, and operands are read only when the stream reaches the work. They refuse
// what cuDNN refuses, and also what cuDNN accepts but would compute wrongly.
#include <algorithm>
#include <cstdio>
#include <set>

#include "tests/emulation/cudnn/execution.h"
#include "tests/emulation/runtime/libraries.h"
#include "tests/emulation/runtime/state.h"

using namespace lockstep::emulation;

struct cudnnContext {
  int device;
  cudaStream_t stream = nullptr;
};

namespace {

constexpr size_t kVersion = 91900, kOldVersion = 90701, kNewerVersion = 92000;

thread_local std::string last_error;

std::set<cudnnHandle_t>& handles() {
  static auto& open = *new std::set<cudnnHandle_t>;
  return open;
}

// Runs a function of the API, one at a time. `body` throws CudnnRefusal to refuse the call.
template <class Body>
cudnnStatus_t call(Body&& body) {
  const std::lock_guard lock(state().mutex);
  try {
    body();
    return CUDNN_STATUS_SUCCESS;
  } catch (const CudnnRefusal& refusal) {
    last_error = refusal.text;
    return refusal.status;
  }
}

void check_handle(cudnnHandle_t handle) {
  require(handles().contains(handle), CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no handle");
}

void execute(cudnnHandle_t handle, const BackendDescriptor& plan, const BackendDescriptor& pack) {
  check_handle(handle);
  require(plan.is_finalized && pack.is_finalized && plan.work &&
              pack.type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
          CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
          "a plan and a variant pack, both finalized");
  require(plan.has(CUDNN_ATTR_EXECUTION_PLAN_HANDLE) &&
              plan.value<cudnnHandle_t>(CUDNN_ATTR_EXECUTION_PLAN_HANDLE) == handle,
          CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH,
          "a plan of another handle, or of a device that is not here");
  CUstream_st* const stream = state().queues.find(handle->stream);
  require(stream != nullptr && stream->device == handle->device,
          CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH,
          "a stream of another device, or none");
  const bool fails = planted_cudnn() == "fails-to-execute" ||
                     (planted_cudnn() == "fails-with-knobs" && plan.engine.has_knobs);
  require(!fails, CUDNN_STATUS_EXECUTION_FAILED, "planted by LOCKSTEP_EMULATION_CUDNN");
  auto execution = std::make_shared<CudnnExecution>(plan, pack, handle->device);
  if (!stream->capture) {
    ++runtime_counters.launches;
    ++runtime_counters.launches_of[execution->name()];
  }
  CudnnExecution::queue(std::move(execution), *stream);
}

}  // namespace

size_t cudnnGetVersion() {
  if (planted_cudnn() == "old-version") return kOldVersion;
  return planted_cudnn() == "newer-version" ? kNewerVersion : kVersion;
}
size_t cudnnGetCudartVersion() {
  return planted_cudnn() == "other-cuda" ? 11080 : CUDART_VERSION;
}
void cudnnGetLastErrorString(char* message, size_t max_size) {
  std::snprintf(message, max_size, "%s", last_error.c_str());
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  return call([&] {
    require(refuse_while_capturing() == cudaSuccess,
            CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED,
            "a handle takes memory, which a captured program must not");
    *handle = new cudnnContext{.device = this_thread().device};
    handles().insert(*handle);
  });
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  return call([&] {
    check_handle(handle);
    handles().erase(handle);
    delete handle;
  });
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return call([&] {
    check_handle(handle);
    const CUstream_st* const found = state().queues.find(stream);
    require(found != nullptr && found->device == handle->device,
            CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH,
            "a stream of another device, or none");
    handle->stream = stream;
  });
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* made) {
  return call([&] { *made = add_descriptor(type); });
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t ended) {
  return call([&] { remove_descriptor(ended); });
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t to,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type,
                                       int64_t count,
                                       const void* values) {
  return call([&] { descriptor_of(to)->set(name, type, count, values); });
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t from,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type,
                                       int64_t capacity,
                                       int64_t* count,
                                       void* values) {
  return call([&] { *count = descriptor_of(from)->get(name, type, capacity, values); });
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return call([&] { finalize(*descriptor_of(descriptor)); });
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle,
                                  cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  return call([&] { execute(handle, *descriptor_of(plan), *descriptor_of(pack)); });
}

namespace {

const FakeFunction kFunctions[] = {
    LS_FAKE(cudnnGetVersion),
    LS_FAKE(cudnnGetCudartVersion),
    LS_FAKE(cudnnGetLastErrorString),
    LS_FAKE(cudnnCreate),
    LS_FAKE(cudnnDestroy),
    LS_FAKE(cudnnSetStream),
    LS_FAKE(cudnnBackendCreateDescriptor),
    LS_FAKE(cudnnBackendDestroyDescriptor),
    LS_FAKE(cudnnBackendSetAttribute),
    LS_FAKE(cudnnBackendGetAttribute),
    LS_FAKE(cudnnBackendFinalize),
    LS_FAKE(cudnnBackendExecute),
};

void* symbol(const char* wanted) {
  const std::string_view name = wanted;
  if (name == "cudnnBackendExecute" && planted_cudnn() == "lacks-a-function") return nullptr;
  for (const FakeFunction& function : kFunctions) {
    if (name == function.name) return function.address;
  }
  return nullptr;
}

constexpr FakeLibrary kCudnn = {symbol};

}  // namespace

namespace lockstep::emulation {

const FakeLibrary* fake_cudnn() {
  return planted_cudnn().empty() ? nullptr : &kCudnn;
}

}  // namespace lockstep::emulation
