#include "kernels/cudnn/autotune.h"

#include <limits>

#include "core/cuda/memory_pool.h"
#include "core/cuda/stopwatch.h"
#include "kernels/fill_uniform.h"

namespace lockstep::kernels::cudnn {
namespace {

// Zeros would run faster: they take less power.
Tensor random(Stream& stream, const Shape& shape, Dtype dtype) {
  Tensor made = Tensor::empty(shape, dtype, Device::kCuda);
  fill_uniform(stream, {.low = -1, .high = 1}, made);
  return made;
}

}  // namespace

double StreamTimer::microseconds(const ConvolutionProblem& problem, const ConvolutionPlan& plan) {
  const lockstep::cuda::MemoryPool scratch;  // not kept: a step has other sizes
  const lockstep::cuda::MemoryPool::Use use(scratch);
  Tensor in = random(stream_, problem.in, problem.dtype);
  Tensor weight = random(stream_, problem.weight, problem.dtype);
  Tensor out = random(stream_, problem.out(), problem.dtype);
  Tensor bias = random(stream_, {problem.weight[0]}, problem.dtype);
  Tensor workspace =
      Tensor::empty({static_cast<int64_t>(plan.workspace_bytes())}, Dtype::kU8, Device::kCuda);
  const cudnnHandle_t handle = target_of(stream_).handle();
  const ConvolutionMemory memory{
      .in = in.bytes(), .weight = weight.bytes(), .out = out.bytes(), .bias = bias.bytes()};
  return lockstep::cuda::median_microseconds(
      stream_.cuda(), [&] { plan.execute(handle, memory, workspace.bytes()); });
}

TimedEngine fastest_engine(const Target& target,
                           const ConvolutionProblem& problem,
                           size_t most_workspace,
                           PlanTimer& timer) {
  const auto plans = fitting_plans(target, problem, most_workspace);
  if (plans.empty()) make_plan(target, problem, most_workspace);  // throws: it says why
  TimedEngine best{.microseconds = std::numeric_limits<double>::infinity()};
  std::string failure;
  for (const auto& plan : plans) {
    try {
      const double time = timer.microseconds(problem, *plan);
      if (time < best.microseconds) best = {plan->choice(), time, plan->workspace_bytes()};
    } catch (const EnvironmentError& error) {  // no memory, or cuDNN or CUDA refused
      failure = fmt::format("{}: {} ({})", plan->choice(), error.what(), error.why());
    }
  }
  if (!best.choice.empty()) return best;
  throw EnvironmentError(
      "none of cuDNN's engines for a convolution runs",
      fmt::format(
          "{}: cuDNN {} made {} plans; {}", problem.text(), api().version(), plans.size(), failure),
      "training without --autotune, or another cuDNN 9");
}

}  // namespace lockstep::kernels::cudnn
