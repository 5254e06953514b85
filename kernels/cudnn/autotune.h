// Choosing an engine by time: what --autotune does for a convolution.
#pragma once

#include <string>

#include "kernels/cudnn/plan.h"

namespace lockstep::kernels::cudnn {

class PlanTimer {
 public:
  PlanTimer() = default;
  PlanTimer(const PlanTimer&) = delete;
  PlanTimer& operator=(const PlanTimer&) = delete;
  virtual ~PlanTimer() = default;

  // Of one call on the device. Errors: EnvironmentError where the engine cannot run after all.
  virtual double microseconds(const ConvolutionProblem& problem, const ConvolutionPlan& plan) = 0;
};

// On the device of `stream`, with random operands and a workspace of its own.
class StreamTimer final : public PlanTimer {
 public:
  // Requires: `stream` outlives this.
  explicit StreamTimer(Stream& stream) : stream_(stream) {}

  double microseconds(const ConvolutionProblem& problem, const ConvolutionPlan& plan) override;

 private:
  Stream& stream_;
};

struct TimedEngine {
  std::string choice = {};  // ConvolutionPlan::choice()
  double microseconds = 0;
  size_t workspace_bytes = 0;
};

// The fastest of fitting_plans(); of equally fast ones the one that cuDNN prefers. Errors: as
// make_plan(); EnvironmentError where none of them runs.
TimedEngine fastest_engine(const Target& target,
                           const ConvolutionProblem& problem,
                           size_t most_workspace,
                           PlanTimer& timer);

}  // namespace lockstep::kernels::cudnn
