#include "kernels/batch_norm.h"

#include <algorithm>

#include "kernels/tree_sum.h"
#include "nn/functional.h"
#include "nn/gather_shards.h"

namespace lockstep::nn {
namespace {

int64_t pixels_of(const Shape& shape) {
  return shape.rank() == 4 ? shape[2] * shape[3] : 1;
}

// One row for each group that has a shard here: merge(the group's rows of `gathered`, row).
template <class Merge>
Tensor merge_groups(const Shards& shards, const Tensor& gathered, Merge&& merge) {
  const int64_t first_row = shards.peers == nullptr ? shards.first : 0;
  const int64_t columns = gathered.shape()[1];
  Tensor merged = Tensor::empty({shards.local_groups(), columns}, Dtype::kF32, gathered.device());
  for (int64_t j = 0; j < shards.local_groups(); ++j) {
    const int64_t row = (shards.first_group() + j) * shards.per_group() - first_row;
    Tensor out = merged.slice(j, 1).view({columns});
    merge(gathered.slice(row, shards.per_group()), out);
  }
  return merged;
}

Tensor sum_groups(Stream& stream, const Shards& shards, const Tensor& gathered) {
  return merge_groups(shards, gathered, [&](const Tensor& group, Tensor& out) {
    kernels::tree_sum(stream, group, out);
  });
}

// Where all of a group's shards are here; a group over several ranks is the caller's to check.
void check_values_per_channel(const Shards& shards, int64_t pixels) {
  if (pixels > 1 || shards.peers != nullptr) return;
  std::vector<int64_t> images(static_cast<size_t>(shards.local_groups()), 0);
  for (int64_t k = 0; k < shards.local(); ++k) {
    images[static_cast<size_t>(shards.group(k) - shards.first_group())] += shards.count(k);
  }
  if (std::ranges::find(images, 1) == images.end()) return;
  throw ShapeError("[batch_norm] x: got one value a channel in a group, expected two or more",
                   "a variance needs two values",
                   "more images in a batch-norm group, or maps larger than one pixel");
}

}  // namespace

Var batch_norm(const Var& x,
               const Var& weight,
               const Var& bias,
               BatchNormRunning& running,
               const kernels::BatchNormParams& params,
               const Var& residual) {
  Stream& stream = x.stream();
  const Shards& shards = x.shards();
  const Tensor& in = x.value();
  const Tensor& gamma = weight.value();
  const Tensor& beta = bias.value();
  const int64_t pixels = pixels_of(in.shape());
  const Device device = stream.device();
  check_values_per_channel(shards, pixels);

  Tensor leaves = Tensor::empty({shards.local(), 2 * in.shape()[1] + 1}, Dtype::kF32, device);
  kernels::batch_norm_shard_stats(stream, shards, in, leaves);
  const Tensor gathered = gather_shards(shards, {leaves}).front();
  const Tensor stats = merge_groups(shards, gathered, [&](const Tensor& group, Tensor& out) {
    kernels::batch_norm_merge_stats(stream, group, pixels, out);
  });
  if (shards.first_group() == 0 && shards.micro_step == 0) {
    const Tensor group0 = stats.slice(0, 1).view({gathered.shape()[1]});
    kernels::batch_norm_update_running(
        stream, group0, pixels, running.momentum, running.mean, running.var);
  }
  Tensor out = Tensor::empty(in.shape(), in.dtype(), device);
  const Tensor shortcut = residual.defined() ? residual.value() : Tensor();
  kernels::batch_norm_forward(stream, shards, in, stats, gamma, beta, shortcut, params, out);

  // The sign of the result tells what ReLU lets through, once a residual went into it.
  const bool gated = residual.defined() && params.relu;
  const Tensor gate = gated ? out : Tensor();
  kernels::BatchNormParams backward_params = params;
  backward_params.relu &= !gated;

  return record("batch_norm",
                out,
                {x, weight, bias, residual},
                [=](Stream& s, Tensor& grad_out, Grads& grads) {
                  const Shards& cut = x.shards();
                  const Shape leaf_shape{cut.local(), gamma.numel()};
                  const auto leaf = [&](size_t i) {
                    return grads.wants(i) ? grads.overwrite(i)
                                          : Tensor::empty(leaf_shape, Dtype::kF32, s.device());
                  };
                  Tensor grad_weight = leaf(1);
                  Tensor grad_bias = leaf(2);
                  Tensor gated_grad = gated ? grad_out : Tensor();
                  kernels::batch_norm_shard_sums(s,
                                                 cut,
                                                 in,
                                                 gate,
                                                 grad_out,
                                                 stats,
                                                 gamma,
                                                 beta,
                                                 params,
                                                 gated_grad,
                                                 grad_weight,
                                                 grad_bias);
                  if (grads.wants(3)) grads.give(3, grad_out);
                  if (!grads.wants(0)) return;
                  const std::vector<Tensor> sums = gather_shards(cut, {grad_weight, grad_bias});
                  const Tensor group_weight = sum_groups(s, cut, sums[0]);
                  const Tensor group_bias = sum_groups(s, cut, sums[1]);
                  kernels::batch_norm_backward(s,
                                               cut,
                                               in,
                                               grad_out,
                                               stats,
                                               group_weight,
                                               group_bias,
                                               gamma,
                                               beta,
                                               backward_params,
                                               grads.overwrite(0));
                });
}

Var batch_norm_inference(const Var& x,
                         const Var& weight,
                         const Var& bias,
                         const BatchNormRunning& running,
                         const kernels::BatchNormParams& params,
                         const Var& residual) {
  Tensor out = Tensor::empty(x.shape(), x.value().dtype(), x.stream().device());
  kernels::batch_norm_inference(x.stream(),
                                x.shards(),
                                x.value(),
                                running.mean,
                                running.var,
                                weight.value(),
                                bias.value(),
                                residual.defined() ? residual.value() : Tensor(),
                                params,
                                out);
  return record("batch_norm_inference", out, {x}, [](Stream&, const Tensor&, Grads&) {
    throw InternalError("[batch_norm_inference] backward: not differentiable",
                        "the module is in evaluation mode while its batch is recording",
                        "call train() before the training step");
  });
}

}  // namespace lockstep::nn
