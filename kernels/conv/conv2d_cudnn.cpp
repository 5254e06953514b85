// A call runs one plan per shard, with up to kMaxWorkspace of scratch memory. cuDNN requires all
// tensors to have one type, so a 16-bit bias is rounded first, and the weights' gradient is widened
// afterward. Inputs of 1 to 3 channels are copied to 4 channels in the workspace: only a network's
// first layer has such an input, and cuDNN would make the same copy if it got 3.
#include "kernels/conv/conv2d_cudnn.h"

#include <algorithm>

#include "core/round_up.h"
#include "kernels/conv/cudnn_plan.h"
#include "kernels/elementwise/convert_rows.h"
#include "kernels/elementwise/fill.h"
#include "kernels/linear/add_bias.h"
#include "kernels/support/shard_plans.h"

namespace lockstep::kernels::cudnn {
namespace {

using ConvolutionPlans = ShardPlans<ConvolutionPlan>;

ConvolutionPlans plans_of(Stream& stream, const Shards& shards, const ConvolutionProblem& problem) {
  const Target& target = target_of(stream);
  const auto make = [&](int64_t images) {
    ConvolutionProblem shard = problem;
    shard.in = {images, problem.in[1], problem.in[2], problem.in[3]};
    return make_plan(target, shard, kMaxWorkspace);
  };
  return {stream, shards, problem.key(), make};
}

size_t aligned(size_t bytes) {
  return round_up(bytes, kAlignment);
}

size_t bytes_of(const Shape& shape, Dtype dtype) {
  return aligned(static_cast<size_t>(shape.numel()) * size_of(dtype));
}

int64_t most_images(const Shards& shards) {
  int64_t most = 0;
  for (int64_t k = 0; k < shards.local(); ++k) most = std::max(most, shards.count(k));
  return most;
}

// Operands that cuDNN needs in another type or width, staged in the workspace.
class Staging {
 public:
  Staging(Stream& stream,
          const Shards& shards,
          const ConvolutionPlans& plans,
          int64_t channels,
          const ConvolutionProblem& problem)
      : stream_(stream), channels_(channels), problem_(problem) {
    const size_t scratch =
        aligned(plans.largest([](const ConvolutionPlan& plan) { return plan.workspace_bytes(); }));
    const Shape shard_in{most_images(shards), problem.in[1], problem.in[2], problem.in[3]};
    const size_t in_bytes = is_padded() ? bytes_of(shard_in, problem.dtype) : 0;
    const size_t weight_bytes = bytes_of(problem.weight, problem.dtype);
    const Shape& taps = problem.weight;
    const ConvolutionProblem asked{
        .dtype = problem.dtype,
        .in = {shard_in[0], channels, shard_in[2], shard_in[3]},
        .weight = {taps[0], channels / problem.params.groups, taps[2], taps[3]},
        .params = problem.params};
    workspace_ = stream.workspace(scratch + staged_bytes(asked), 0).shared;
    in_ = workspace_ + scratch;
    weight_ = in_ + in_bytes;
    bias_ = weight_ + weight_bytes;
  }

  std::byte* workspace() const { return workspace_; }

  // Returns the input of `images` images, padded if cuDNN needs it.
  void* in(const std::byte* from, int64_t images) const {
    if (!is_padded()) return const_cast<std::byte*>(from);
    convert({.count = images * problem_.in[2] * problem_.in[3],
             .from_type = problem_.dtype,
             .to_type = problem_.dtype,
             .from_channels = channels_,
             .to_channels = problem_.in[1]},
            from,
            in_);
    return in_;
  }
  void* weight(const Tensor& from) const {
    if (!is_padded()) return const_cast<std::byte*>(from.bytes());
    convert({.count = taps(),
             .from_type = problem_.dtype,
             .to_type = problem_.dtype,
             .from_channels = channels_,
             .to_channels = problem_.in[1]},
            from.bytes(),
            weight_);
    return weight_;
  }
  void* bias(const Tensor& from) const {
    if (!from.defined() || problem_.dtype == Dtype::kF32)
      return const_cast<std::byte*>(from.bytes());
    convert({.count = 1,
             .to_type = problem_.dtype,
             .from_channels = from.numel(),
             .to_channels = from.numel()},
            from.bytes(),
            bias_);
    return bias_;
  }
  // The memory into which cuDNN writes the gradient of the input, and the conversion from there to
  // `to`.
  void* grad_in(std::byte* to) const { return is_padded() ? in_ : to; }
  void finish_grad_in(std::byte* to, int64_t images) const {
    if (!is_padded()) return;
    convert({.count = images * problem_.in[2] * problem_.in[3],
             .from_type = problem_.dtype,
             .to_type = problem_.dtype,
             .from_channels = problem_.in[1],
             .to_channels = channels_},
            in_,
            to);
  }
  // The memory into which cuDNN writes the gradient of the weights, and the conversion from there
  // to `leaf`.
  void* grad_weight(float* leaf) const { return is_direct() ? static_cast<void*>(leaf) : weight_; }
  void finish_grad_weight(float* leaf) const {
    if (is_direct()) return;
    convert({.count = taps(),
             .from_type = problem_.dtype,
             .from_channels = problem_.weight[1],
             .to_channels = channels_ / problem_.params.groups},
            weight_,
            reinterpret_cast<std::byte*>(leaf));
  }

 private:
  bool is_padded() const { return channels_ != problem_.in[1]; }
  bool is_direct() const { return !is_padded() && problem_.dtype == Dtype::kF32; }
  int64_t taps() const { return problem_.weight[0] * problem_.weight[2] * problem_.weight[3]; }
  void convert(const cuda::RowConversion& conversion, const std::byte* from, std::byte* to) const {
    cuda::convert_rows(stream_, conversion, from, to);
  }

  Stream& stream_;
  int64_t channels_;  // of the caller's input
  const ConvolutionProblem& problem_;
  std::byte* workspace_ = nullptr;
  std::byte* in_ = nullptr;
  std::byte* weight_ = nullptr;
  std::byte* bias_ = nullptr;
};

// The additional operands of a fused pass.
struct Neighbors {
  Tensor affine = {}, sums = {};

  // Sets the pointers to the rows of local shard k.
  void point_to(ConvolutionMemory& memory, int64_t k) const {
    const auto row = [k](const Tensor& rows, int64_t which) -> void* {
      if (!rows.defined()) return nullptr;
      const Shape& shape = rows.shape();
      const int64_t at = (which * shape[1] + k) * shape[2];
      return const_cast<std::byte*>(rows.bytes()) + static_cast<size_t>(at) * size_of(rows.dtype());
    };
    memory.in_scale = row(affine, 0);
    memory.in_shift = row(affine, 1);
    memory.sums = row(sums, 0);
    memory.square_sums = row(sums, 1);
  }
  void zero_sums(Stream& stream, int64_t k) {
    if (!sums.defined()) return;
    const Shape& shape = sums.shape();
    Tensor rows = sums.view({2 * shape[1], shape[2]});
    for (const int64_t row : {k, shape[1] + k}) {
      Tensor zeros = rows.slice(row, 1);
      cuda::fill(stream, 0.0F, zeros);
    }
  }
};

void forward(Stream& stream,
             const Shards& shards,
             const ConvolutionProblem& problem,
             const Conv2dForwardArgs& args,
             Neighbors neighbors) {
  const ConvolutionPlans plans = plans_of(stream, shards, problem);
  const cudnnHandle_t handle = target_of(stream).handle();
  const Staging staging(stream, shards, plans, args.in.shape()[1], problem);
  void* const weights = staging.weight(args.weight);
  void* const offsets = staging.bias(args.bias);
  for (int64_t k = 0; k < shards.local(); ++k) {
    const int64_t images = shards.count(k);
    if (images == 0) {
      neighbors.zero_sums(stream, k);
      continue;
    }
    ConvolutionMemory memory{.in = staging.in(shard_rows(args.in, shards, k), images),
                             .weight = weights,
                             .out = shard_rows(args.out, shards, k),
                             .bias = offsets};
    neighbors.point_to(memory, k);
    plans[plans.find(images)].execute(handle, memory, staging.workspace());
  }
}

void backward_weight(Stream& stream,
                     const Shards& shards,
                     const ConvolutionProblem& problem,
                     const Conv2dBackwardWeightArgs& args,
                     const Neighbors& neighbors) {
  const ConvolutionPlans plans = plans_of(stream, shards, problem);
  const cudnnHandle_t handle = target_of(stream).handle();
  const Staging staging(stream, shards, plans, args.in.shape()[1], problem);
  for (int64_t k = 0; k < shards.local(); ++k) {
    const int64_t images = shards.count(k);
    if (images == 0) {
      Tensor leaf = args.grad_weight.slice(k, 1);
      cuda::fill(stream, 0.0F, leaf);
      continue;
    }
    float* const leaf = shard_leaf(args.grad_weight, k);
    ConvolutionMemory memory{.in = staging.in(shard_rows(args.in, shards, k), images),
                             .weight = staging.grad_weight(leaf),
                             .out = const_cast<std::byte*>(shard_rows(args.grad_out, shards, k))};
    neighbors.point_to(memory, k);
    plans[plans.find(images)].execute(handle, memory, staging.workspace());
    staging.finish_grad_weight(leaf);
  }
}

}  // namespace

bool is_available() {
  return lockstep::cuda::has_library(kSoname);
}

std::string version() {
  return api().version();
}

bool fits(const ConvolutionProblem& problem) {
  const auto is_whole = [](int64_t elements, Dtype type) {
    return static_cast<size_t>(elements) * size_of(type) % kAlignment == 0;
  };
  const bool in_is_copied = problem.padded().in != problem.in;
  return problem.in.numel() > 0 && is_whole(problem.out().stride0(), problem.dtype) &&
         (in_is_copied || (is_whole(problem.in.stride0(), problem.dtype) &&
                           is_whole(problem.weight.numel(), Dtype::kF32)));
}

size_t staged_bytes(const ConvolutionProblem& problem) {
  const ConvolutionProblem wanted = problem.padded();
  const size_t in_bytes = wanted.in == problem.in ? 0 : bytes_of(wanted.in, wanted.dtype);
  return in_bytes + bytes_of(wanted.weight, wanted.dtype) +
         bytes_of({wanted.weight[0]}, wanted.dtype);
}

bool takes(const ConvolutionProblem& problem) {
  return is_available() && fits(problem);
}

void keep_plan(Stream& stream, const ConvolutionProblem& problem, std::string_view choice) {
  const Target& target = target_of(stream);
  const ConvolutionProblem padded = problem.padded();
  stream.plan<ConvolutionPlan>(padded.key(), [&] {
    const std::lock_guard lock(plan_mutex);
    return make_plan(target, padded, kMaxWorkspace, choice);
  });
}

size_t workspace_bytes(Stream& stream, const ConvolutionProblem& problem) {
  const ConvolutionPlans plans = plans_of(stream, Shards::single(problem.in[0]), problem.padded());
  return aligned(plans[0].workspace_bytes()) + staged_bytes(problem);
}

void conv2d_forward(Stream& stream, const Shards& shards, const Conv2dForwardArgs& args) {
  forward(stream, shards, problem_of(args).padded(), args, {});
}

void conv2d_fused_forward(Stream& stream,
                          const Shards& shards,
                          const Conv2dForwardArgs& args,
                          const Tensor& affine,
                          Tensor& sums) {
  const ConvolutionProblem problem = fused(problem_of(args), affine);
  forward(stream, shards, problem.padded(), args, {affine, sums});
}

void conv2d_backward_data(Stream& stream,
                          const Shards& shards,
                          const Tensor& grad_out,
                          const Tensor& weight,
                          const Conv2dParams& params,
                          Tensor& grad_in) {
  const ConvolutionProblem problem = ConvolutionProblem{.pass = ConvolutionPass::kBackwardData,
                                                        .dtype = grad_in.dtype(),
                                                        .in = grad_in.shape(),
                                                        .weight = weight.shape(),
                                                        .params = params}
                                         .padded();
  const ConvolutionPlans plans = plans_of(stream, shards, problem);
  const cudnnHandle_t handle = target_of(stream).handle();
  const Staging staging(stream, shards, plans, grad_in.shape()[1], problem);
  void* const weights = staging.weight(weight);
  for (int64_t k = 0; k < shards.local(); ++k) {
    const int64_t images = shards.count(k);
    if (images == 0) continue;
    std::byte* const to = shard_rows(grad_in, shards, k);
    plans[plans.find(images)].execute(
        handle,
        {.in = staging.grad_in(to),
         .weight = weights,
         .out = const_cast<std::byte*>(shard_rows(grad_out, shards, k))},
        staging.workspace());
    staging.finish_grad_in(to, images);
  }
}

void conv2d_backward_weight(Stream& stream,
                            const Shards& shards,
                            const Conv2dBackwardWeightArgs& args) {
  backward_weight(stream, shards, problem_of(args).padded(), args, {});
  Tensor grad_bias = args.bias_gradient();
  if (grad_bias.defined()) cuda::add_bias_backward(stream, shards, args.grad_out, grad_bias);
}

void conv2d_fused_backward_weight(Stream& stream,
                                  const Shards& shards,
                                  const Conv2dBackwardWeightArgs& args,
                                  const Tensor& affine) {
  const ConvolutionProblem problem = fused(problem_of(args), affine);
  backward_weight(stream, shards, problem.padded(), args, {.affine = affine});
}

}  // namespace lockstep::kernels::cudnn
