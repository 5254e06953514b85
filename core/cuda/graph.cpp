#include "core/cuda/graph.h"

#include <utility>

#include <cuda_runtime_api.h>

#include "core/cuda/error.h"

namespace lockstep::cuda {
namespace {

thread_local bool recording_here = false;

// Ends the recording also where the body throws.
class Recording {
 public:
  explicit Recording(cudaStream_t stream) : stream_(stream) {
    // Other threads, such as the loader's, may call CUDA meanwhile.
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "graph");
    recording_here = true;
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording() {
    recording_here = false;
    if (stream_ == nullptr) return;
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(stream_, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaGetLastError();  // clears it: the body's exception is being thrown
  }

  std::shared_ptr<CUgraph_st> end() {
    cudaGraph_t graph = nullptr;
    recording_here = false;
    check(cudaStreamEndCapture(std::exchange(stream_, nullptr), &graph), "graph");
    return {graph, [](cudaGraph_t ended) { cudaGraphDestroy(ended); }};
  }

 private:
  cudaStream_t stream_;
};

}  // namespace

Graph Graph::record(CUstream_st* stream, FunctionRef<void()> body) {
  Recording recording(stream);
  body();
  const std::shared_ptr<CUgraph_st> recorded = recording.end();
  cudaGraphExec_t executable = nullptr;
  // Without the flag all nodes have the launch stream's priority, the exchange's kernels too.
  check(cudaGraphInstantiate(&executable, recorded.get(), cudaGraphInstantiateFlagUseNodePriority),
        "graph");
  Graph graph;
  graph.executable_ = {executable, [](cudaGraphExec_t ended) { cudaGraphExecDestroy(ended); }};
  return graph;
}

void Graph::launch(CUstream_st* stream) const {
  check(cudaGraphLaunch(executable_.get(), stream), "graph");
}

bool is_recording_here() {
  return recording_here;
}

bool is_recording(CUstream_st* stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream, &status), "graph");
  return status != cudaStreamCaptureStatusNone;
}

}  // namespace lockstep::cuda
