// Sees the steps of a training: for timelines, watches and planted faults.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/autograd.h"
#include "core/function_ref.h"
#include "core/shards.h"

#pragma GCC visibility push(default)
namespace lockstep {

class Timeline;

// Sees nothing by default. Steps count from 1. Called on the thread that takes the steps.
class StepObserver {
 public:
  enum class Pass : uint8_t { kForward, kBackward };

  virtual ~StepObserver() = default;

  virtual void begin_step(int64_t /*step*/) {}
  // Whether the host must call the ops of this step one by one: a recorded graph calls no observer.
  virtual bool needs_host() { return false; }
  // Returns the listener for a micro-step's tape, or null.
  virtual TapeListener* listener(const Shards& /*shards*/) { return nullptr; }
  virtual void begin_micro_step(const Var& /*images*/) {}  // the root of the tape
  virtual void begin_pass(Pass /*pass*/) {}
  virtual void end_backward() {}
  // This rank's gradients are there. Next, it waits for their sums.
  virtual void before_sums() {}
  // Runs `work`, the phase of this name.
  virtual void in_phase(std::string_view /*name*/, FunctionRef<void()> work) { work(); }
  // Where spans are recorded; null: nowhere.
  virtual Timeline* timeline() { return nullptr; }
};

}  // namespace lockstep
#pragma GCC visibility pop
