#include "kernels/batch_norm.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "kernels/tree_sum.h"
#include "nn/autocast.h"
#include "nn/functional.h"
#include "nn/gather_shards.h"
#include "nn/norm_handover.h"

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

// Whether this batch moves the running statistics, which follow group 0.
bool moves_running(const Shards& shards) {
  return shards.first_group() == 0 && shards.micro_step == 0;
}

// The statistics of the groups that have a shard here.
Tensor group_stats(Stream& stream,
                   const Shards& shards,
                   const Tensor& in,
                   BatchNormRunning& running) {
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

// One batch norm in training, with all that its gradient needs.
struct Normalization {
  Shards shards;
  Tensor in, stats, weight, bias;
  kernels::BatchNormParams params;

  bool groups_are_shards() const { return shards.per_group() == 1; }

  // Fills `stats`, where groups are shards.
  Tensor train(Stream& stream,
               const Tensor& sums,
               const Tensor& residual,
               BatchNormRunning running) {
    Tensor out = Tensor::empty(in.shape(), in.dtype(), stream.device());
    kernels::batch_norm_shard_forward(stream,
                                      shards,
                                      in,
                                      sums,
                                      weight,
                                      bias,
                                      residual,
                                      params,
                                      running.momentum,
                                      running.mean,
                                      running.var,
                                      stats,
                                      out);
    return out;
  }

  // Once more, to the same bits.
  Tensor forward(Stream& stream, const Tensor& residual) const {
    Tensor out = Tensor::empty(in.shape(), in.dtype(), stream.device());
    kernels::batch_norm_forward(stream, shards, in, stats, weight, bias, residual, params, out);
    return out;
  }

  // Inputs 0 to 3: in, weight, bias, residual. `gate` is the result where a residual went into
  // ReLU: grad_out is then gated in place.
  void backward(Stream& stream, const Tensor& gate, Tensor& grad_out, Grads& grads) const {
    const auto leaves = [&](size_t i) {
      return grads.wants(i)
                 ? grads.overwrite(i)
                 : Tensor::empty({shards.local(), weight.numel()}, Dtype::kF32, stream.device());
    };
    Tensor grad_weight = leaves(1);
    Tensor grad_bias = leaves(2);
    Tensor gated = gate.defined() ? grad_out : Tensor();
    if (groups_are_shards() && grads.wants(0)) {
      Tensor grad_in = grads.wants(3) ? grads.overwrite(0) : grad_out;
      kernels::batch_norm_shard_backward(stream,
                                         shards,
                                         in,
                                         gate,
                                         grad_out,
                                         grads.addend(),
                                         stats,
                                         weight,
                                         bias,
                                         params,
                                         gated,
                                         grad_weight,
                                         grad_bias,
                                         grad_in);
      grads.give(grads.wants(3) ? 3 : 0, grad_out);
      return;
    }
    kernels::batch_norm_shard_sums(stream,
                                   shards,
                                   in,
                                   gate,
                                   grad_out,
                                   stats,
                                   weight,
                                   bias,
                                   params,
                                   gated,
                                   grad_weight,
                                   grad_bias);
    if (grads.wants(3)) grads.give(3, grad_out);
    if (!grads.wants(0)) return;
    const std::vector<Tensor> sums = gather_shards(stream, shards, {grad_weight, grad_bias});
    const kernels::BatchNormParams rest{.eps = params.eps, .relu = params.relu && !gate.defined()};
    if (!grads.wants(3)) grads.give(0, grad_out);  // written over it: less memory to fetch
    Tensor grad_in = grads.wants(3) ? grads.overwrite(0) : grad_out;
    kernels::batch_norm_backward(stream,
                                 shards,
                                 in,
                                 grad_out,
                                 stats,
                                 sum_groups(stream, shards, sums[0]),
                                 sum_groups(stream, shards, sums[1]),
                                 weight,
                                 bias,
                                 rest,
                                 grad_in);
  }
};

// The first way of asking for it fills norm.stats.
class DeferredNormalization final : public DeferredNorm {
 public:
  DeferredNormalization(const Normalization& norm, Tensor sums, const BatchNormRunning& running)
      : norm_(norm), sums_(std::move(sums)), running_(running) {}

  const Tensor& in() const override { return norm_.in; }
  Tensor affine(Stream& stream) override {
    Tensor rows =
        Tensor::empty({2, norm_.shards.local(), norm_.in.shape()[1]}, in().dtype(), in().device());
    BatchNormRunning running = std::exchange(running_, {});
    kernels::batch_norm_shard_affine(stream,
                                     norm_.shards,
                                     norm_.in,
                                     sums_,
                                     norm_.weight,
                                     norm_.bias,
                                     norm_.params,
                                     running.momentum,
                                     running.mean,
                                     running.var,
                                     norm_.stats,
                                     rows);
    return rows;
  }
  Tensor out(Stream& stream) { return norm_.train(stream, sums_, {}, std::exchange(running_, {})); }

 private:
  Normalization norm_;
  Tensor sums_;
  BatchNormRunning running_;  // nobody's after the first time
};

struct Normalized {
  Tensor out = {};  // undefined: deferred
  std::shared_ptr<DeferredNormalization> deferred = {};
};

// Settles norm.stats, whose memory a deferred one fills later.
Normalized normalize(const Var& x,
                     const Var& residual,
                     BatchNormRunning& running,
                     Normalization& norm) {
  Stream& stream = x.stream();
  const Shards& shards = norm.shards;
  check_groups_are_here(shards);
  check_values_per_channel(shards, pixels_of(norm.in.shape()));
  const Tensor shortcut = residual.defined() ? residual.value() : Tensor();
  if (!norm.groups_are_shards()) {
    norm.stats = group_stats(stream, shards, norm.in, running);
    return {norm.forward(stream, shortcut)};
  }
  const int64_t columns = 2 * norm.in.shape()[1] + 1;
  norm.stats = Tensor::empty({shards.local(), columns}, Dtype::kF32, stream.device());
  const auto given = x.handover<ChannelSums>();
  const Tensor sums = given ? given->rows : Tensor();
  const BatchNormRunning moved =
      moves_running(shards) && shards.local() > 0 ? running : BatchNormRunning();
  if (sums.defined() && norm.params.relu && !residual.defined()) {
    return {.deferred = std::make_shared<DeferredNormalization>(norm, sums, moved)};
  }
  return {norm.train(stream, sums, shortcut, moved)};
}

}  // namespace

Var batch_norm(const Var& input,
               const Var& weight,
               const Var& bias,
               BatchNormRunning& running,
               const kernels::BatchNormParams& params,
               const Var& residual,
               BatchNormGroups groups) {
  const Var x = for_norms(input);
  Shards shards = x.shards();
  if (groups == BatchNormGroups::kOne) shards.groups = 1;
  Normalization norm{.shards = shards,
                     .in = x.value(),
                     .stats = {},
                     .weight = weight.value(),
                     .bias = bias.value(),
                     .params = params};
  const auto [out, deferred] = normalize(x, residual, running, norm);
  if (!residual.defined()) {
    return record(
        "batch_norm",
        out,
        {x, weight, bias, residual},
        [norm](Stream& s, Tensor& grad_out, Grads& grads) {
          norm.backward(s, {}, grad_out, grads);
        },
        {.remake = [norm, deferred = deferred](
                       Stream& s) { return deferred ? deferred->out(s) : norm.forward(s, {}); },
         .handover = deferred,
         .like = norm.in});
  }
  const Tensor gate = params.relu ? out : Tensor();
  return record("batch_norm",
                out,
                {x, weight, bias, residual},
                [norm, gate](Stream& s, Tensor& grad_out, Grads& grads) {
                  norm.backward(s, gate, grad_out, grads);
                },
                {.adds = gate.defined() && norm.groups_are_shards() && x.requires_grad()});
}

Var batch_norm_inference(const Var& input,
                         const Var& weight,
                         const Var& bias,
                         const BatchNormRunning& running,
                         const kernels::BatchNormParams& params,
                         const Var& residual) {
  const Var x = for_norms(input);
  const Tensor& in = x.value();
  const Tensor shortcut = residual.defined() ? residual.value() : Tensor();
  const auto make = [=,
                     batch = x.shared_batch(),
                     mean = running.mean,
                     var = running.var,
                     gamma = weight.value(),
                     beta = bias.value()](Stream& stream) {
    Tensor out = Tensor::empty(in.shape(), in.dtype(), stream.device());
    kernels::batch_norm_inference(
        stream, batch->shards, in, mean, var, gamma, beta, shortcut, params, out);
    return out;
  };
  return record("batch_norm_inference",
                make(x.stream()),
                {x},
                [](Stream&, const Tensor&, Grads&) {
                  throw InternalError(
                      "[batch_norm_inference] backward: not differentiable",
                      "the module is in evaluation mode while its batch is recording",
                      "call train() before the training step");
                },
                {.remake = make});
}

}  // namespace lockstep::nn
