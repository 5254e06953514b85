// Ends waits for the device that would never end, as a kernel of a collective waits for a lost
// rank.
#pragma once

#include <chrono>
#include <vector>

#include "core/error.h"
#include "core/function_ref.h"

struct CUstream_st;

namespace lockstep::cuda {

// While one lives, the host asks again and again in place of waiting in the driver, in all of
// core/cuda's functions that wait, and the watch may end the wait by throwing. One at a time.
// Thread safety: made, used and ended by one thread, which makes all waits.
class Watch {
 public:
  // `streams`: those whose work may never end. Errors: EnvironmentError in a build without CUDA.
  explicit Watch(std::vector<CUstream_st*> streams);
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  virtual ~Watch();

  // The host waits, since `waited` ago.
  virtual void look(std::chrono::steady_clock::duration waited) = 0;
  // The end of a stream or of memory is about to wait for the device, and cannot throw: waits for
  // the streams first, and where look() gives up so does the process.
  void before_end() noexcept;

  const std::vector<CUstream_st*>& streams() const { return streams_; }

 private:
  [[noreturn]] virtual void end_process(const Error& why) noexcept = 0;

  std::vector<CUstream_st*> streams_;
};

// Where a watch lives, returns when the stream has done what it was given; else at once. Before
// calls that wait in the driver. Errors: what the watch throws.
void wait_watched(CUstream_st* stream);

// For core/cuda alone. Waits likewise until `is_busy` says no, which it is asked again and again.
void wait_watched_while(FunctionRef<bool()> is_busy);
// Waits likewise for all of the watch's streams, before a wait for the whole device.
void wait_watched_streams();
// Call it before ending a stream or memory, which waits for the device.
void tell_watch_of_end() noexcept;

}  // namespace lockstep::cuda
