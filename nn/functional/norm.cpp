#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "kernels/norm/batch_norm.h"
#include "kernels/reduce/tree_sum.h"
#include "nn/autocast.h"
#include "nn/functional/normalization.h"
#include "nn/gather_shards.h"

namespace lockstep::nn {
namespace {

int64_t pixels_of(const Shape& shape) {
  return shape.rank() == 4 ? shape[2] * shape[3] : 1;
}

// Returns one row for each group that has a shard on this rank, as merge(the group's rows of
// `gathered`, row) computes it.
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

// Checks groups whose shards are all on this rank. For groups that span ranks the caller must
// check.
void check_values_per_channel(const Shards& shards, int64_t pixels) {
  if (pixels > 1 || shards.peers != nullptr) return;
  std::vector<int64_t> images(static_cast<size_t>(shards.local_groups()), 0);
  for (int64_t k = 0; k < shards.local(); ++k) {
    images[static_cast<size_t>(shards.group(k) - shards.first_group())] += shards.count(k);
  }
  if (std::ranges::find(images, 1) == images.end()) return;
  throw ShapeError("[batch_norm] x: got one value per channel in a group, expected two or more",
                   "a variance needs two values",
                   "more images in a batch-norm group, or maps larger than one pixel");
}

void check_groups_are_here(const Shards& shards) {
  const int64_t groups_end = (shards.first_group() + shards.local_groups()) * shards.per_group();
  if (shards.peers != nullptr || shards.local() == 0 ||
      (shards.first % shards.per_group() == 0 && groups_end == shards.first + shards.local())) {
    return;
  }
  throw ShapeError(
      fmt::format("[batch_norm] a group of {} shards spans ranks, and the batch has no peers",
                  shards.per_group()),
      "its statistics are those of all its ranks",
      "set Shards::peers to the ranks' communicator");
}

// Tells whether this batch updates the running statistics, which follow group 0.
bool moves_running(const Shards& shards) {
  return shards.first_group() == 0 && shards.micro_step == 0;
}

// The statistics of the groups that have a shard on this rank.
Tensor group_stats(Stream& stream,
                   const Shards& shards,
                   const Tensor& in,
                   kernels::BatchNormRunning& running) {
  const int64_t pixels = pixels_of(in.shape());
  Tensor leaves =
      Tensor::empty({shards.local(), 2 * in.shape()[1] + 1}, Dtype::kF32, stream.device());
  kernels::batch_norm_shard_stats(stream, shards, in, leaves);
  const Tensor gathered = gather_shards(stream, shards, {leaves}).front();
  Tensor stats = merge_groups(shards, gathered, [&](const Tensor& group, Tensor& out) {
    kernels::batch_norm_merge_stats(stream, group, pixels, out);
  });
  if (moves_running(shards)) {
    const Tensor group0 = stats.slice(0, 1).view({gathered.shape()[1]});
    kernels::batch_norm_update_running(
        stream, group0, pixels, running.momentum, running.mean, running.var);
  }
  return stats;
}

}  // namespace

Normalization::Normalization(const Var& x, const BatchNormState& norm)
    : shards_(x.shards()),
      in_(x.value()),
      weight_(norm.weight.value()),
      bias_(norm.bias.value()),
      params_(norm.params) {
  if (norm.groups == BatchNormGroups::kOne) shards_.groups = 1;
  check_groups_are_here(shards_);
  check_values_per_channel(shards_, pixels_of(in_.shape()));
}

kernels::BatchNormShardArgs Normalization::shard_args(const Tensor& sums,
                                                      kernels::BatchNormRunning* running) {
  const Shape shape{shards_.local(), 2 * in_.shape()[1] + 1};
  stats_ = Tensor::empty(shape, Dtype::kF32, in_.device());
  return {.in = in_,
          .sums = sums,
          .weight = weight_,
          .bias = bias_,
          .params = params_,
          .running = moves_running(shards_) && shards_.local() > 0 ? running : nullptr,
          .stats = stats_};
}

Tensor Normalization::train(Stream& stream,
                            const Tensor& sums,
                            const Tensor& residual,
                            kernels::BatchNormRunning& running) {
  if (!groups_are_shards()) {
    stats_ = group_stats(stream, shards_, in_, running);
    return forward(stream, residual);
  }
  const kernels::BatchNormShardArgs args = shard_args(sums, &running);
  Tensor out = Tensor::empty(in_.shape(), in_.dtype(), stream.device());
  kernels::batch_norm_shard_forward(stream, shards_, args, residual, out);
  return out;
}

Tensor Normalization::affine(Stream& stream,
                             const Tensor& sums,
                             kernels::BatchNormRunning* running) {
  const kernels::BatchNormShardArgs args = shard_args(sums, running);
  const Shape shape{2, shards_.local(), in_.shape()[1]};
  Tensor rows = Tensor::empty(shape, in_.dtype(), in_.device());
  kernels::batch_norm_shard_affine(stream, shards_, args, rows);
  return rows;
}

Tensor Normalization::forward(Stream& stream, const Tensor& residual) const {
  Tensor out = Tensor::empty(in_.shape(), in_.dtype(), stream.device());
  kernels::batch_norm_forward(stream,
                              shards_,
                              {.in = in_,
                               .group_stats = stats_,
                               .weight = weight_,
                               .bias = bias_,
                               .residual = residual,
                               .params = params_,
                               .out = out});
  return out;
}

void Normalization::backward(Stream& stream,
                             const Tensor& gate,
                             const Tensor& addend,
                             Tensor& grad_out,
                             Grads& grads) const {
  const auto leaves = [&](size_t i) {
    return grads.wants(i)
               ? grads.overwrite(i)
               : Tensor::empty({shards_.local(), weight_.numel()}, Dtype::kF32, stream.device());
  };
  Tensor grad_weight = leaves(1);
  Tensor grad_bias = leaves(2);
  const bool has_residual = grads.wants(3);
  const bool writes = gate.defined() || params_.activation == Activation::kGelu;
  const kernels::BatchNormSumsArgs sums{.in = in_,
                                        .out = gate,
                                        .grad_out = grad_out,
                                        .group_stats = stats_,
                                        .weight = weight_,
                                        .bias = bias_,
                                        .params = params_,
                                        .grad_residual = writes ? &grad_out : nullptr,
                                        .grad_weight = grad_weight,
                                        .grad_bias = grad_bias};
  if (groups_are_shards() && grads.wants(0)) {
    Tensor grad_in = has_residual ? grads.overwrite(0) : grad_out;
    kernels::batch_norm_shard_backward(stream, shards_, sums, addend, grad_in);
    grads.give(has_residual ? 3 : 0, grad_out);
    return;
  }
  kernels::batch_norm_shard_sums(stream, shards_, sums);
  if (has_residual) grads.give(3, grad_out);
  if (!grads.wants(0)) return;
  const std::vector<Tensor> all = gather_shards(stream, shards_, {grad_weight, grad_bias});
  // The gradient overwrites grad_out, to save memory traffic.
  if (!has_residual) grads.give(0, grad_out);
  Tensor grad_in = has_residual ? grads.overwrite(0) : grad_out;
  kernels::batch_norm_backward(
      stream,
      shards_,
      {.in = in_,
       .grad_out = grad_out,
       .group_stats = stats_,
       .group_grad_weight = sum_groups(stream, shards_, all[0]),
       .group_grad_bias = sum_groups(stream, shards_, all[1]),
       .weight = weight_,
       .bias = bias_,
       .params = {.eps = params_.eps,
                  .activation = writes ? Activation::kNone : params_.activation},
       .grad_in = grad_in});
}

Var batch_norm(const NormInput& input, BatchNormState& norm) {
  const Var x = cast_for_norms(input.value);
  Normalization normalization(x, norm);
  Tensor out = normalization.train(x.stream(), input.sums, {}, norm.running);
  return record(
      "batch_norm",
      std::move(out),
      {x, norm.weight, norm.bias, {}},
      [normalization](Stream& s, Tensor& grad_out, Grads& grads) {
        normalization.backward(s, {}, {}, grad_out, grads);
      },
      [normalization](Stream& s) { return normalization.forward(s, {}); });
}

Forked batch_norm(const NormInput& input, BatchNormState& norm, const Var& residual) {
  const Var x = cast_for_norms(input.value);
  Normalization normalization(x, norm);
  const Tensor out = normalization.train(x.stream(), input.sums, residual.value(), norm.running);
  const Tensor gate = norm.params.activation == Activation::kRelu ? out : Tensor();
  // A listener must see the sum of both gradients. On a dry stream there are no gradients to see.
  const Batch& batch = x.batch();
  const bool watched = batch.is_watched() && x.stream().device() != Device::kDry;
  const bool adds =
      gate.defined() && normalization.groups_are_shards() && x.requires_grad() && !watched;
  Var branch;
  if (batch.recording && adds) {
    branch = Var(out, x.shared_batch());
    branch.set_requires_grad(true);
  }
  const auto backward = [=](Stream& s, Tensor& grad_out, Grads& grads) mutable {
    Tensor addend;
    if (branch.defined()) {
      addend = branch.grad();
      branch.set_grad({});
    }
    normalization.backward(s, gate, addend, grad_out, grads);
  };
  const Var value = record("batch_norm", out, {x, norm.weight, norm.bias, residual}, backward);
  return {.value = value, .branch = branch.defined() ? branch : value};
}

Var batch_norm_inference(const Var& input, const BatchNormState& norm, const Var& residual) {
  const Var x = cast_for_norms(input);
  const Tensor shortcut = residual.defined() ? residual.value() : Tensor();
  const auto make = [=, in = x.value(), batch = x.shared_batch()](Stream& stream) {
    Tensor out = Tensor::empty(in.shape(), in.dtype(), stream.device());
    kernels::batch_norm_inference(stream,
                                  batch->shards,
                                  {.in = in,
                                   .running_mean = norm.running.mean,
                                   .running_var = norm.running.var,
                                   .weight = norm.weight.value(),
                                   .bias = norm.bias.value(),
                                   .residual = shortcut,
                                   .params = norm.params,
                                   .out = out});
    return out;
  };
  const auto backward = [](Stream&, const Tensor&, Grads&) {
    throw InternalError("[batch_norm_inference] backward: not differentiable",
                        "the module is in evaluation mode while its batch is recording",
                        "call train() before the training step");
  };
  return record("batch_norm_inference", make(x.stream()), {x}, backward, make);
}

}  // namespace lockstep::nn
