// Chooses engines of convolutions by measured time, for --autotune.
#pragma once

#include <string>

#include "core/function_ref.h"
#include "kernels/conv/cudnn_plan.h"

namespace lockstep::kernels::cudnn {

// The part of a batch norm with ReLU that is timed, where each shard is a group: all of it, the
// rest of it when a convolution gave the sums, or only its scales and shifts.
enum class NormStep : uint8_t { kWhole, kFromSums, kAffine };

class PlanTimer {
 public:
  PlanTimer() = default;
  PlanTimer(const PlanTimer&) = delete;
  PlanTimer& operator=(const PlanTimer&) = delete;
  virtual ~PlanTimer() = default;

  // Microseconds of one call on the device. Errors: EnvironmentError when the engine cannot run
  // after all.
  virtual double microseconds(const ConvolutionProblem& problem, const ConvolutionPlan& plan) = 0;
  virtual double microseconds(NormStep step, const Shape& shape, Dtype dtype) = 0;
};

// Times calls on the device of `stream`, with random operands and its own workspace.
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
  double rule_microseconds = 0;  // of the engine that the fixed rule chooses
  size_t workspace_bytes = 0;
};

// The fastest of fitting_plans(), or of equally fast ones the one that cuDNN prefers.
// rule_microseconds is the time of the first of them that runs. Errors: as make_plan();
// EnvironmentError when none of them runs.
TimedEngine fastest_engine(const Target& target,
                           const ConvolutionProblem& problem,
                           size_t most_workspace,
                           PlanTimer& timer);

// Returns the engine of a problem that was timed before.
using KnownEngine = FunctionRef<TimedEngine(const ConvolutionProblem& problem)>;

// The fastest engine for a form of kernels/conv/conv2d_fused.h. kNoEngine when none runs, or when
// the fused form saves no time. The times compared, and returned, are of the forward pass with
// everything that depends on its form: the batch norm after it, and for a form with a norm before
// it also that norm and the gradient of the weights. `known` must return the engines of the forms
// that fused_forms() lists before this one, and of the layer's unfused passes.
TimedEngine fused_engine(const Target& target,
                         const ConvolutionProblem& form,
                         size_t most_workspace,
                         KnownEngine known,
                         PlanTimer& timer);

}  // namespace lockstep::kernels::cudnn
