// Interrupts waits for the device that would never end, such as for a collective's kernel that
// waits for a lost rank.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "core/cuda/stream.h"
#include "core/error.h"
#include "core/function_ref.h"

struct CUstream_st;

namespace lockstep::cuda {

// While a Watch lives, all functions of core/cuda that wait poll the device instead of waiting in
// the driver, and call look(), which may end the wait by throwing. One at a time.
// Thread safety: made, used and ended by one thread, which makes all waits.
class Watch {
 public:
  // `streams`: the ones whose work may never end. Errors: EnvironmentError in a build without CUDA.
  explicit Watch(const std::vector<CUstream_st*>& streams);
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  virtual ~Watch();

  // Called again and again during a wait, which has lasted `waited`.
  virtual void look(std::chrono::steady_clock::duration waited) = 0;
  // Called before the destruction of a stream or of memory, which waits for the device and cannot
  // throw. Waits for the watched streams first; if look() throws, the process ends.
  void before_end() noexcept;

  // As wait_watched_streams() and limit_queue() below.
  void wait_for_streams();
  void limit_queue(CUstream_st* stream);

 private:
  struct Queue {
    CUstream_st* stream = nullptr;
    int launches = 0;  // since `mark` was recorded
    std::optional<Event> mark = {};
  };

  [[noreturn]] virtual void end_process(const Error& why) noexcept = 0;

  std::vector<Queue> queues_;
};

// Call it before a call that waits in the driver. While a Watch lives, waits until the stream is
// idle; otherwise returns at once. Errors: those of Watch::look().
void wait_watched(CUstream_st* stream);

// Only for core/cuda. Polls `is_busy` in the same way until it returns false.
void wait_watched_while(FunctionRef<bool()> is_busy);
// Waits in the same way for all of the watch's streams, before a wait for the whole device.
void wait_watched_streams();
// Call it after a launch. The driver's queue is finite, and a launch into a full one waits in the
// driver, where nobody looks. So while a Watch lives, each of its streams has at most a few hundred
// launches queued; those of a graph do not count. Errors: those of Watch::look().
void limit_queue(CUstream_st* stream);
// Call it before destroying a stream or freeing memory, which waits for the device.
void tell_watch_of_end() noexcept;

}  // namespace lockstep::cuda
