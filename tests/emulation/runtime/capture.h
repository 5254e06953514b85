// Capturing streams, and what is given to a stream: queued, or captured into a graph.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <driver_types.h>

#include "tests/emulation/runtime/queues.h"
#include "tests/emulation/runtime/shared_event.h"

namespace lockstep::emulation {

// From cudaStreamBeginCapture to cudaStreamEndCapture. Streams join it by waiting for its events.
struct Capture {
  cudaStreamCaptureMode mode;
  CUstream_st* origin;
  std::thread::id thread = std::this_thread::get_id();
  bool valid = true;
  GraphNodes nodes = {};
};

// Gives `run` to the stream, to be run when it is its turn and `ready`, if there is one, says so.
// Errors: cudaErrorStreamCaptureInvalidated.
cudaError_t give(CUstream_st& stream, std::function<void()> run, std::function<bool()> ready = {});

// Makes the capture of `stream`, if there is one, end in an error.
void invalidate(CUstream_st& stream);
// For calls that a captured program must not make: the captures they would break are invalidated.
// Errors: cudaErrorStreamCaptureUnsupported.
cudaError_t refuse_while_capturing();
// Refuses likewise for calls that wait for the whole device, whatever the captures' modes.
cudaError_t refuse_while_any_captures();
// Refuses likewise for calls on the legacy default stream. Errors: cudaErrorStreamCaptureImplicit.
cudaError_t refuse_default_stream();

}  // namespace lockstep::emulation

struct CUevent_st {
  int device = 0;
  bool timed = true;
  std::shared_ptr<lockstep::emulation::Point> last = {};  // null: never recorded
  bool captured = false;                                  // recorded last in `capture`
  std::weak_ptr<lockstep::emulation::Capture> capture = {};
  std::vector<size_t> after = {};
  bool urgent = false;  // recorded last in a stream of high priority
  int recorder = 0;     // that stream's number
  std::shared_ptr<lockstep::emulation::SharedEvent> shared = {};  // between processes
  bool imported = false;                                          // another process records it
};
