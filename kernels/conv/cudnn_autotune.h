// Choosing an engine by time: what --autotune does for a convolution.
#pragma once

#include <string>

#include "core/function_ref.h"
#include "kernels/conv/cudnn_plan.h"

namespace lockstep::kernels::cudnn {

// A batch norm with ReLU, each shard a group: all of it, what a convolution's sums leave of it, and
// the scales and shifts alone.
enum class NormStep : uint8_t { kWhole, kFromSums, kAffine };

class PlanTimer {
 public:
  PlanTimer() = default;
  PlanTimer(const PlanTimer&) = delete;
  PlanTimer& operator=(const PlanTimer&) = delete;
  virtual ~PlanTimer() = default;

  // Microseconds of one call on the device. Errors: EnvironmentError where the engine cannot run
  // after all.
  virtual double microseconds(const ConvolutionProblem& problem, const ConvolutionPlan& plan) = 0;
  virtual double microseconds(NormStep step, const Shape& shape, Dtype dtype) = 0;
};

// On the device of `stream`, with random operands and a workspace of its own.
class StreamTimer final : public PlanTimer {
 public:
  // Requires: `stream` outlives this.
  explicit StreamTimer(Stream& stream) : stream_(stream) {}

  double microseconds(const ConvolutionProblem& problem, const ConvolutionPlan& plan) override;
  double microseconds(NormStep step, const Shape& shape, Dtype dtype) override;

 private:
  Stream& stream_;
};

inline constexpr const char* kNoEngine = "none";

struct TimedEngine {
  std::string choice = {};  // ConvolutionPlan::choice(), or kNoEngine
  double microseconds = 0;
  double rule_microseconds = 0;  // of what would be done without timing
  size_t workspace_bytes = 0;
};

// The fastest of fitting_plans(), beside the first of them that runs; of equally fast ones the one
// that cuDNN prefers. Errors: as make_plan(); EnvironmentError where none of them runs.
TimedEngine fastest_engine(const Target& target,
                           const ConvolutionProblem& problem,
                           size_t most_workspace,
                           PlanTimer& timer);

// Returns the engine of a problem that was timed before.
using KnownEngine = FunctionRef<TimedEngine(const ConvolutionProblem& problem)>;

// For a form of kernels/conv/conv2d_fused.h: its fastest engine; kNoEngine where none runs, and
// where a forward pass with all that depends on its form takes no less time than it does without.
// Those are the times given: of a form with sums the batch norm after it is part, of one with a
// norm also the one before it, and the gradient of the weights. `known` is asked for the forms that
// fused_forms() lists before it, and for the layer's own passes.
TimedEngine fused_engine(const Target& target,
                         const ConvolutionProblem& form,
                         size_t most_workspace,
                         KnownEngine known,
                         PlanTimer& timer);

}  // namespace lockstep::kernels::cudnn
