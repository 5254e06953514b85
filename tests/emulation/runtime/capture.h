// Stream capture. Work given to a stream is either queued or captured into a graph.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <driver_types.h>

#include "tests/emulation/runtime/queues.h"
#include "tests/emulation/runtime/shared_event.h"

namespace lockstep::emulation {

// A capture from cudaStreamBeginCapture to cudaStreamEndCapture. Other streams join it by waiting
// for its events.
struct Capture {
  cudaStreamCaptureMode mode;
  CUstream_st* origin;
  std::thread::id thread = std::this_thread::get_id();
  bool valid = true;
  GraphNodes nodes = {};
};

// Adds `run` to the stream. It runs when its turn has come and `ready`, if given, returns true.
// Errors: cudaErrorStreamCaptureInvalidated.
cudaError_t submit(CUstream_st& stream,
                   std::function<void()> run,
                   std::function<bool()> ready = {});

// Makes the capture of `stream`, if it is capturing, end in an error.
void invalidate(CUstream_st& stream);
// For calls that are not allowed during a capture: invalidates the captures that they would break.
// Errors: cudaErrorStreamCaptureUnsupported.
cudaError_t refuse_while_capturing();
// Does the same for calls that wait for the whole device, in any capture mode.
cudaError_t refuse_while_any_captures();
// Does the same for calls on the legacy default stream. Errors: cudaErrorStreamCaptureImplicit.
cudaError_t refuse_default_stream();

}  // namespace lockstep::emulation

struct CUevent_st {
  int device = 0;
  bool timed = true;
  std::shared_ptr<lockstep::emulation::Point> last = {};  // null: not recorded, or captured
  bool captured = false;                                  // last recorded in `capture`
  std::weak_ptr<lockstep::emulation::Capture> capture = {};
  std::vector<size_t> after = {};
  bool urgent = false;  // last recorded in a stream of high priority
  int recorder = 0;     // that stream's number
  std::shared_ptr<lockstep::emulation::SharedEvent> shared = {};  // shared between processes
  bool imported = false;                                          // another process records it
};
