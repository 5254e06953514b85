// The API's functions for events.
#include <cstdlib>
#include <string_view>

#include "tests/emulation/runtime/capture.h"
#include "tests/emulation/runtime/state.h"

using namespace lockstep::emulation;

namespace {

template <class Body>
cudaError_t with_event(cudaEvent_t event, Body&& body) {
  return api(
      [&] { return state().events.holds(event) ? body(*event) : cudaErrorInvalidResourceHandle; });
}

// Counts uses of an event of another process that has destroyed it.
void note_use(const CUevent_st& event) {
  if (event.imported && event.shared->ended()) ++runtime_counters.uses_of_ended_events;
}

// Lets the stream wait for an event of a capture, which makes it part of that capture.
cudaError_t join(CUstream_st& stream, const CUevent_st& event) {
  const auto capture = event.capture.lock();
  if (!capture) return cudaErrorCapturedEvent;
  if (stream.capture && stream.capture != capture) {
    invalidate(stream);
    capture->valid = false;
    return cudaErrorStreamCaptureMerge;
  }
  if (!capture->valid) return cudaErrorStreamCaptureInvalidated;
  stream.capture = capture;
  stream.after.insert(stream.after.end(), event.after.begin(), event.after.end());
  return cudaSuccess;
}

// Records that the stream with number `waiter`, or the host, waits for the event. True if that wait
// is to be skipped.
bool is_forgotten(int waiter, const CUevent_st& event) {
  if (event.imported || event.recorder == 0) return false;
  const EventWait wait{waiter, event.recorder};
  state().event_waits.insert(wait);
  return state().forgotten.contains(wait);
}

// A planted bug. With LOCKSTEP_EMULATION_FORGETS=to-wait, streams of high priority wait for no
// stream of low priority; with =to-be-awaited, streams of low priority wait for none of high
// priority.
bool is_forgotten(const CUstream_st& stream, const CUevent_st& event) {
  if (is_forgotten(stream.number, event)) return true;
  const bool of_urgent = event.imported ? event.shared->urgent() : event.urgent;
  static const char* const text = std::getenv("LOCKSTEP_EMULATION_FORGETS");
  static const std::string_view forgets = text == nullptr ? "" : text;
  const bool urgent = stream.priority < 0;
  return (forgets == "to-wait" && urgent && !of_urgent) ||
         (forgets == "to-be-awaited" && !urgent && of_urgent);
}

// Captured events can be neither waited for nor queried by the host.
cudaError_t refuse_captured(const CUevent_st& event) {
  if (!event.captured) return refuse_while_capturing();
  if (const auto capture = event.capture.lock()) capture->valid = false;
  return cudaErrorCapturedEvent;
}

// Waits for the latest record that the other process has made so far, if any.
cudaError_t wait_for_other(CUstream_st& stream, const std::shared_ptr<SharedEvent>& event) {
  const uint64_t number = event->recorded();
  if (event->has_passed(number)) return cudaSuccess;
  return submit(
      stream,
      [] {},
      [=] {
        event->note_waiter(number);
        return event->has_passed(number);
      });
}

// Queues the record: `last` passes in the stream's order, and so does the state that other
// processes see.
void push_record(CUstream_st& stream, const CUevent_st& event) {
  Operation record = {.passes = event.last};
  if (event.shared) {
    const uint64_t number = event.shared->record(event.urgent);
    auto pass = std::make_shared<GraphNodes>();
    pass->push_back({[shared = event.shared, number] { shared->pass(number); }, {}});
    record.nodes = std::move(pass);
  }
  state().queues.push(stream, std::move(record));
}

// An imported event is requested from its own process, whose queues then advance.
bool has_passed(const CUevent_st& event) {
  if (!event.imported) return !event.last || event.last->passed;
  const uint64_t number = event.shared->recorded();
  if (event.shared->has_passed(number)) return true;
  event.shared->note_waiter(number);
  return false;
}

}  // namespace

extern "C" {

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return api([&] {
    const bool timed = (flags & cudaEventDisableTiming) == 0;
    CUevent_st made{.device = this_thread().device, .timed = timed};
    if ((flags & cudaEventInterprocess) != 0) {
      if (timed) return cudaErrorInvalidValue;
      made.shared = SharedEvent::create(made.device);
      if (!made.shared) return cudaErrorMapBufferObjectFailed;
    }
    *event = state().events.add(std::move(made));
    return cudaSuccess;
  });
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return release([&] {
    if (!state().events.holds(event)) return cudaErrorInvalidResourceHandle;
    if (event->shared && !event->imported) event->shared->end();
    note_use(*event);
    state().events.remove(event);
    return cudaSuccess;
  });
}
cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
  return with_event(handle, [&](CUevent_st& event) {
    CUstream_st* const stream = state().queues.find(stream_handle);
    if (stream == nullptr || stream->device != event.device) return cudaErrorInvalidResourceHandle;
    if (event.imported) return cudaErrorNotSupported;  // CUDA allows it; Lockstep does not use it
    if (stream->capture && !stream->capture->valid) return cudaErrorStreamCaptureInvalidated;
    event.captured = stream->capture != nullptr;
    event.capture = stream->capture;
    event.after = stream->after;
    event.urgent = stream->priority < 0;
    event.recorder = stream->number;
    event.last = event.captured ? nullptr : std::make_shared<Point>();
    if (!event.captured) push_record(*stream, event);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle, unsigned) {
  return with_event(event_handle, [&](const CUevent_st& event) {
    CUstream_st* const stream = state().queues.find(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (is_forgotten(*stream, event)) return cudaSuccess;
    if (event.captured) return join(*stream, event);
    if (stream->capture) {
      invalidate(*stream);
      return cudaErrorStreamCaptureIsolation;
    }
    note_use(event);
    if (event.imported) return wait_for_other(*stream, event.shared);
    if (event.last) state().queues.push(*stream, {.waits = event.last});
    return cudaSuccess;
  });
}
cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return with_event(handle, [&](const CUevent_st& event) {
    if (const cudaError_t status = refuse_captured(event); status != cudaSuccess) return status;
    if (is_forgotten(0, event) || has_passed(event)) return cudaSuccess;
    if (!event.imported) state().queues.advance(*event.last);
    return cudaErrorNotReady;
  });
}
cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return with_event(handle, [&](const CUevent_st& event) {
    if (const cudaError_t status = refuse_captured(event); status != cudaSuccess) return status;
    ++runtime_counters.synchronizations;
    if (is_forgotten(0, event)) return cudaSuccess;
    if (event.last) state().queues.finish(*event.last);
    return cudaSuccess;
  });
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t first, cudaEvent_t second) {
  return with_event(first, [&](const CUevent_st& begin) {
    if (!state().events.holds(second)) return cudaErrorInvalidResourceHandle;
    const CUevent_st& end = *second;
    if (!begin.timed || !end.timed || !begin.last || !end.last)
      return cudaErrorInvalidResourceHandle;
    if (!begin.last->passed || !end.last->passed) return cudaErrorNotReady;
    constexpr float kPerOperation = 1e-3F;  // a thousand operations take a millisecond
    *milliseconds =
        kPerOperation * (static_cast<float>(end.last->time) - static_cast<float>(begin.last->time));
    return cudaSuccess;
  });
}

}  // extern "C"
