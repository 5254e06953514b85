#include "kernels/conv/cudnn_autotune.h"

#include <algorithm>
#include <limits>

#include <fmt/core.h>

#include "core/cuda/memory.h"
#include "core/cuda/stopwatch.h"
#include "kernels/norm/batch_norm.h"
#include "kernels/random/fill_uniform.h"

namespace lockstep::kernels::cudnn {
namespace {

// Random values, because kernels run faster on zeros, which take less power.
Tensor random(Stream& stream, const Shape& shape, Dtype dtype) {
  Tensor made = Tensor::empty(shape, dtype, Device::kCuda);
  fill_uniform(stream, {.low = -1, .high = 1}, made);
  return made;
}

// The fastest of `plans`. If none runs, the result has no choice, and `failure` gives the reason.
TimedEngine fastest_of(const std::vector<std::unique_ptr<ConvolutionPlan>>& plans,
                       const ConvolutionProblem& problem,
                       PlanTimer& timer,
                       std::string& failure) {
  TimedEngine best{.microseconds = std::numeric_limits<double>::infinity()};
  double first = 0;
  for (const auto& plan : plans) {
    try {
      const double time = timer.microseconds(problem, *plan);
      if (first == 0) first = time;
      if (time < best.microseconds)
        best = {.choice = plan->choice(),
                .microseconds = time,
                .workspace_bytes = plan->workspace_bytes()};
    } catch (const EnvironmentError& error) {  // no memory, or a call of cuDNN or CUDA failed
      failure = fmt::format("{}: {} ({})", plan->choice(), error.what(), error.why());
    }
  }
  best.rule_microseconds = first;
  return best;
}

// The layer's unfused pass.
ConvolutionProblem plain(const ConvolutionProblem& form, ConvolutionPass pass) {
  return {.pass = pass,
          .dtype = form.dtype,
          .in = form.in,
          .weight = form.weight,
          .params = form.params};
}

}  // namespace

double StreamTimer::microseconds(const ConvolutionProblem& problem, const ConvolutionPlan& plan) {
  const lockstep::cuda::MemoryPool scratch;  // freed afterward: a training step has other sizes
  const lockstep::cuda::MemoryPool::Use use(scratch);
  Tensor in = random(stream_, problem.in, problem.dtype);
  Tensor weight = random(stream_, problem.weight, problem.dtype);
  Tensor out = random(stream_, problem.out(), problem.dtype);
  Tensor bias = random(stream_, {problem.weight[0]}, problem.dtype);
  Tensor sums = random(stream_, {2, problem.weight[0]}, Dtype::kF32);
  Tensor affine = random(stream_, {2, problem.in[1]}, problem.dtype);
  Tensor workspace =
      Tensor::empty({static_cast<int64_t>(plan.workspace_bytes())}, Dtype::kU8, Device::kCuda);
  const cudnnHandle_t handle = target_of(stream_).handle();
  const auto second_row = [](Tensor& rows) { return rows.bytes() + rows.nbytes() / 2; };
  const ConvolutionMemory memory{.in = in.bytes(),
                                 .weight = weight.bytes(),
                                 .out = out.bytes(),
                                 .bias = bias.bytes(),
                                 .sums = sums.bytes(),
                                 .square_sums = second_row(sums),
                                 .in_scale = affine.bytes(),
                                 .in_shift = second_row(affine)};
  return lockstep::cuda::median_microseconds(
      stream_.cuda(), [&] { plan.execute(handle, memory, workspace.bytes()); });
}

double StreamTimer::microseconds(NormStep step, const Shape& shape, Dtype dtype) {
  const lockstep::cuda::MemoryPool scratch;
  const lockstep::cuda::MemoryPool::Use use(scratch);
  const int64_t channels = shape[1];
  const Shards shards = Shards::single(shape[0]);
  const Tensor in = random(stream_, shape, dtype);
  const Tensor weight = random(stream_, {channels}, Dtype::kF32);
  const Tensor sums = random(stream_, {2, 1, channels}, Dtype::kF32);
  BatchNormRunning running{random(stream_, {channels}, Dtype::kF32),
                           random(stream_, {channels}, Dtype::kF32)};
  Tensor stats = random(stream_, {1, 2 * channels + 1}, Dtype::kF32);
  Tensor out = random(stream_, step == NormStep::kAffine ? Shape{2, 1, channels} : shape, dtype);
  const BatchNormShardArgs args{.in = in,
                                .sums = step == NormStep::kWhole ? no_tensor : sums,
                                .weight = weight,
                                .bias = weight,
                                .params = {.activation = Activation::kRelu},
                                .running = &running,
                                .stats = stats};
  return lockstep::cuda::median_microseconds(stream_.cuda(), [&] {
    if (step == NormStep::kAffine) {
      batch_norm_shard_affine(stream_, shards, args, out);
    } else {
      batch_norm_shard_forward(stream_, shards, args, {}, out);
    }
  });
}

TimedEngine fastest_engine(const Target& target,
                           const ConvolutionProblem& problem,
                           size_t most_workspace,
                           PlanTimer& timer) {
  const auto plans = fitting_plans(target, problem, most_workspace);
  if (plans.empty()) make_plan(target, problem, most_workspace);  // throws, with the reason
  std::string failure;
  TimedEngine best = fastest_of(plans, problem, timer, failure);
  if (!best.choice.empty()) return best;
  throw EnvironmentError(
      "none of cuDNN's engines for a convolution runs",
      fmt::format(
          "{}: cuDNN {} made {} plans; {}", problem.text(), api().version(), plans.size(), failure),
      "another cuDNN 9, or engines by rule",
      Remedy::kEnginesByRule);
}

TimedEngine fused_engine(const Target& target,
                         const ConvolutionProblem& form,
                         size_t most_workspace,
                         KnownEngine known,
                         PlanTimer& timer) {
  const auto norm = [&](NormStep step, const Shape& shape) {
    return timer.microseconds(step, shape, form.dtype);
  };
  std::string failure;
  TimedEngine found = fastest_of(fitting_plans(target, form, most_workspace), form, timer, failure);
  const TimedEngine gradient = known(plain(form, ConvolutionPass::kBackwardWeight));
  if (form.pass == ConvolutionPass::kBackwardWeight) {
    found.rule_microseconds = gradient.microseconds;
    if (!found.choice.empty()) return found;
    return {.choice = kNoEngine,
            .microseconds = gradient.microseconds,
            .rule_microseconds = gradient.microseconds};
  }
  found.microseconds += norm(NormStep::kFromSums, form.out());
  if (!form.norms_in) {
    found.rule_microseconds = known(plain(form, ConvolutionPass::kForward)).microseconds +
                              norm(NormStep::kWhole, form.out());
  } else {
    ConvolutionProblem with_norm = plain(form, ConvolutionPass::kBackwardWeight);
    with_norm.norms_in = true;
    const TimedEngine its_gradient = known(with_norm);
    if (its_gradient.choice == kNoEngine) found.choice.clear();
    found.microseconds += its_gradient.microseconds + norm(NormStep::kAffine, form.in);
    ConvolutionProblem with_sums = plain(form, ConvolutionPass::kForward);
    with_sums.gives_sums = true;
    const TimedEngine other = known(with_sums);
    found.rule_microseconds = std::min(other.microseconds, other.rule_microseconds) +
                              gradient.microseconds + norm(NormStep::kFromSums, form.in);
  }
  if (found.choice.empty()) found.microseconds = found.rule_microseconds;
  if (!(found.microseconds < found.rule_microseconds)) {
    found.choice = kNoEngine;
    found.workspace_bytes = 0;
  }
  return found;
}

}  // namespace lockstep::kernels::cudnn
