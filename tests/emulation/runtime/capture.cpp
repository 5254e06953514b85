#include "tests/emulation/runtime/capture.h"

#include "tests/emulation/runtime/state.h"

namespace lockstep::emulation {
namespace {

// Invalidates the captures of streams for which `concerns` is true. Errors: `error` if there is
// one.
template <class Concerns>
cudaError_t refuse(Concerns&& concerns, cudaError_t error) {
  cudaError_t status = cudaSuccess;
  for (const auto& stream : state().queues.streams()) {
    if (!stream->capture || !concerns(*stream)) continue;
    stream->capture->valid = false;
    status = error;
  }
  return status;
}

}  // namespace

cudaError_t submit(CUstream_st& stream, std::function<void()> run, std::function<bool()> ready) {
  if (!stream.capture) {
    auto nodes = std::make_shared<GraphNodes>();
    nodes->push_back({std::move(run), {}, std::move(ready)});
    state().queues.push(stream, {.nodes = std::move(nodes)});
    return cudaSuccess;
  }
  if (!stream.capture->valid) return cudaErrorStreamCaptureInvalidated;
  GraphNodes& nodes = stream.capture->nodes;
  nodes.push_back({std::move(run), stream.after, std::move(ready), stream.priority});
  stream.after = {nodes.size() - 1};
  return cudaSuccess;
}

void invalidate(CUstream_st& stream) {
  if (stream.capture) stream.capture->valid = false;
}

cudaError_t refuse_while_capturing() {
  const cudaStreamCaptureMode mine = this_thread().capture_mode;
  if (mine == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  const auto concerns = [&](const CUstream_st& stream) {
    const Capture& capture = *stream.capture;
    if (capture.thread == std::this_thread::get_id())
      return capture.mode != cudaStreamCaptureModeRelaxed;
    return mine == cudaStreamCaptureModeGlobal && capture.mode == cudaStreamCaptureModeGlobal;
  };
  return refuse(concerns, cudaErrorStreamCaptureUnsupported);
}

cudaError_t refuse_while_any_captures() {
  return refuse([](const CUstream_st&) { return true; }, cudaErrorStreamCaptureUnsupported);
}

cudaError_t refuse_default_stream() {
  const auto blocking = [](const CUstream_st& stream) {
    return (stream.flags & cudaStreamNonBlocking) == 0;
  };
  const cudaError_t status = refuse(blocking, cudaErrorStreamCaptureImplicit);
  return status == cudaSuccess ? refuse_while_capturing() : status;
}

}  // namespace lockstep::emulation
