// Execution plans: which of cuDNN's engines computes a convolution, and how.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/stream.h"
#include "kernels/conv/convolution_problem.h"
#include "kernels/support/cudnn/target.h"

namespace lockstep::kernels::cudnn {

// A call's memory on the device, 16-byte aligned. `weight` is the weights or their gradient.
// Members that the problem does not use are ignored.
struct ConvolutionMemory {
  void* in = nullptr;
  void* weight = nullptr;
  void* out = nullptr;
  void* bias = nullptr;
  void* sums = nullptr;  // f32
  void* square_sums = nullptr;
  void* in_scale = nullptr;
  void* in_shift = nullptr;
};

class ConvolutionPlan final : public Plan {
 public:
  ConvolutionPlan(Descriptor plan, const Descriptor& config, const ConvolutionProblem& problem);

  size_t workspace_bytes() const { return workspace_bytes_; }
  // The engine's number and knob choices, "engine 58 2:1 12:0". Equal texts mean the same kernel.
  const std::string& choice() const { return choice_; }
  // cuDNN's numerical notes on the engine.
  const std::vector<cudnnBackendNumericalNote_t>& notes() const { return notes_; }
  // Queues it on the stream that `handle` was given. Errors: CudnnError.
  void execute(cudnnHandle_t handle, const ConvolutionMemory& memory, void* workspace) const;

 private:
  Descriptor plan_;
  bool has_bias_, gives_sums_, norms_in_;
  size_t workspace_bytes_ = 0;
  std::string choice_;
  std::vector<cudnnBackendNumericalNote_t> notes_;
};

// Lists the engines that fit, in cuDNN's order of preference, each choice() once. An engine fits if
// it gives the same bits each time, sums in f32 without rounding inputs (no TF32), and needs at
// most `most_workspace` bytes of workspace.
std::vector<std::unique_ptr<ConvolutionPlan>> fitting_plans(const Target& target,
                                                            const ConvolutionProblem& problem,
                                                            size_t most_workspace);
// The first of fitting_plans(). Errors: EnvironmentError when there is none, naming the problem and
// a type that has a plan.
std::unique_ptr<ConvolutionPlan> make_plan(const Target& target,
                                           const ConvolutionProblem& problem,
                                           size_t most_workspace);
// The one of fitting_plans() with this choice(). Errors: EnvironmentError when there is none.
std::unique_ptr<ConvolutionPlan> make_plan(const Target& target,
                                           const ConvolutionProblem& problem,
                                           size_t most_workspace,
                                           std::string_view choice);
// The first of fitting_plans(), or null.
std::unique_ptr<ConvolutionPlan> find_plan(const Target& target,
                                           const ConvolutionProblem& problem,
                                           size_t most_workspace);

}  // namespace lockstep::kernels::cudnn
