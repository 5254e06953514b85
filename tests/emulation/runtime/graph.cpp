// The API's functions for stream capture and graphs.
#include <set>

#include "tests/emulation/runtime/capture.h"
#include "tests/emulation/runtime/state.h"

using namespace lockstep::emulation;

namespace {

// The nodes in `last` and all their predecessors.
std::set<size_t> reached_from(const GraphNodes& nodes, std::vector<size_t> last) {
  std::set<size_t> reached;
  while (!last.empty()) {
    const size_t node = last.back();
    last.pop_back();
    if (reached.insert(node).second)
      last.insert(last.end(), nodes[node].after.begin(), nodes[node].after.end());
  }
  return reached;
}

// Detaches all streams from the capture. False if one of them has work that the capture's origin
// has not joined.
bool detach(const Capture& capture) {
  const std::set<size_t> joined = reached_from(capture.nodes, capture.origin->after);
  bool all = true;
  for (const auto& stream : state().queues.streams()) {
    if (stream->capture.get() != &capture) continue;
    for (const size_t node : stream->after) all = all && joined.contains(node);
    stream->capture.reset();
    stream->after.clear();
  }
  return all;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return api([&] {
    CUstream_st* const stream = state().queues.find(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (stream == state().queues.find(nullptr)) return cudaErrorStreamCaptureUnsupported;
    if (stream->capture) return cudaErrorIllegalState;
    stream->capture = std::make_shared<Capture>(Capture{.mode = mode, .origin = stream});
    return cudaSuccess;
  });
}
cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  return api([&] {
    *graph = nullptr;
    CUstream_st* const stream = state().queues.find(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    const std::shared_ptr<Capture> capture = stream->capture;
    if (!capture) return cudaErrorIllegalState;
    const bool here = capture->thread == std::this_thread::get_id();
    if (!here && capture->mode != cudaStreamCaptureModeRelaxed)
      return cudaErrorStreamCaptureWrongThread;
    if (capture->origin != stream) {
      capture->valid = false;
      return cudaErrorStreamCaptureUnmatched;
    }
    const bool joined = detach(*capture);
    if (!capture->valid) return cudaErrorStreamCaptureInvalidated;
    if (!joined) return cudaErrorStreamCaptureUnjoined;
    *graph = state().graphs.add({std::make_shared<GraphNodes>(std::move(capture->nodes))});
    return cudaSuccess;
  });
}
cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  return api([&] {
    const CUstream_st* const stream = state().queues.find(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    const Capture* const capture = stream->capture.get();
    *status = capture == nullptr ? cudaStreamCaptureStatusNone
              : capture->valid   ? cudaStreamCaptureStatusActive
                                 : cudaStreamCaptureStatusInvalidated;
    return cudaSuccess;
  });
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return api([&] {
    std::swap(*mode, this_thread().capture_mode);
    return cudaSuccess;
  });
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return api([&] {
    if (!state().graphs.holds(graph) || nodes != nullptr) return cudaErrorInvalidValue;
    *count = graph->nodes->size();
    return cudaSuccess;
  });
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable,
                                 cudaGraph_t graph,
                                 unsigned long long flags) {
  // Only cudaGraphInstantiateWithParams supports the upload flag; Lockstep does not launch graphs
  // from devices.
  constexpr unsigned long long kKnown =
      cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUseNodePriority;
  return api([&] {
    if (!state().graphs.holds(graph) || (flags & ~kKnown) != 0) return cudaErrorInvalidValue;
    const bool own_priorities = (flags & cudaGraphInstantiateFlagUseNodePriority) != 0;
    *executable = state().executables.add({graph->nodes, own_priorities});
    return cudaSuccess;
  });
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  return api([&] {
    CUstream_st* const stream = state().queues.find(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (!state().executables.holds(executable)) return cudaErrorInvalidValue;
    if (stream->capture) {
      invalidate(*stream);
      return cudaErrorStreamCaptureUnsupported;
    }
    ++runtime_counters.graph_launches;
    Operation operation = {.nodes = executable->nodes};
    if (!executable->own_priorities) operation.priority = stream->priority;
    for (const GraphNode& node : *operation.nodes) {
      ++runtime_counters.graph_nodes_at[operation.priority.value_or(node.priority)];
    }
    state().queues.push(*stream, std::move(operation));
    return cudaSuccess;
  });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return release(
      [&] { return state().graphs.remove(graph) ? cudaSuccess : cudaErrorInvalidValue; });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return release(
      [&] { return state().executables.remove(executable) ? cudaSuccess : cudaErrorInvalidValue; });
}

}  // extern "C"
