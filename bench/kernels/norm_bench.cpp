#include <numeric>

#include "bench/kernels/op_bench.h"
#include "kernels/norm/batch_norm.h"

namespace lockstep::bench {
namespace {

using kernels::Activation;

const Cases kLayers{.cpu = {kF32,
                            {{32, 16, 28, 28},
                             {32, 32, 14, 14},
                             {32, 64, 56, 56},
                             {32, 10, 28, 28},
                             {32, 512, 7, 7},
                             {128, 64, 32, 32},     // ResNet-18, CIFAR
                             {32, 64, 112, 112},    // ResNet-50
                             {32, 1024, 14, 14}}},  // ResNet-50
                    .cuda = {kFloatTypes, kResnetShapes}};
const Cases kStatistics{.cpu = kLayers.cpu, .cuda = {kF32, kResnetShapes}};
const Cases kAirbench{.cpu = {kFloatTypes, {{256, 64, 15, 15}, {256, 256, 7, 7}}},
                      .cuda = {kFloatTypes, {{1024, 64, 15, 15}, {1024, 256, 7, 7}}}};
const Cases kAffine{.cuda = {{Dtype::kF16}, kResnetShapes}};

// One group for all shards, or one for each shard.
enum class Groups { kOne, kShards };

struct Layer {
  // `adds`: its op adds a residual before ReLU.
  Layer(Timer& t, Groups groups, bool adds = false, Activation activation = Activation::kRelu)
      : stream(t.stream()),
        params{.activation = activation},
        in(t.random(t.shape(), t.dtype())),
        grad(t.random(t.shape(), t.dtype())),
        residual(t.random(t.shape(), t.dtype())),
        out(t.random(t.shape(), t.dtype())),
        added(adds ? residual : Tensor()),
        gate(adds ? out : Tensor()),
        gated(adds || activation == Activation::kGelu ? grad : Tensor()),
        weight(t.random_f32({t[1]})),
        bias(t.random_f32({t[1]})),
        running{t.random_f32({t[1]}), t.random({t[1]}, Dtype::kF32, 0)} {
    const int64_t count = std::gcd(t[0], int64_t{stream.threads()});
    shards = Shards::cut(t[0], count, groups == Groups::kOne ? 1 : count);
    leaves = t.empty({count, 2 * t[1] + 1}, Dtype::kF32);
    stats = t.empty({1, 2 * t[1] + 1}, Dtype::kF32);
    grad_weight = t.random_f32({count, t[1]});
    grad_bias = t.random_f32({count, t[1]});
    kernels::batch_norm_shard_stats(stream, shards, in, leaves);
    merge();
  }

  int64_t pixels() const { return in.shape()[2] * in.shape()[3]; }
  void merge() {
    Tensor merged = stats.view({stats.numel()});
    kernels::batch_norm_merge_stats(stream, leaves, pixels(), merged);
  }
  kernels::BatchNormSumsArgs sums_by(const Tensor& group_stats) {
    return {in, gate, grad, group_stats, weight, bias, params, &gated, grad_weight, grad_bias};
  }

  Stream& stream;
  Shards shards;
  kernels::BatchNormParams params;
  Tensor in, grad, residual, out;
  Tensor added, gate, gated;  // some of these, or undefined
  Tensor weight, bias;
  kernels::BatchNormRunning running;
  Tensor leaves, stats, grad_weight, grad_bias;
};

const Bench kStats("batch_norm_shard_stats", kLayers, [](Timer& t) {
  Layer l(t, Groups::kOne);
  t.run(l.in.nbytes(),
        [&] { kernels::batch_norm_shard_stats(l.stream, l.shards, l.in, l.leaves); });
});

const Bench kMerge("batch_norm_merge_stats", kStatistics, [](Timer& t) {
  Layer l(t, Groups::kOne);
  t.run(l.leaves.nbytes() + l.stats.nbytes(), [&] { l.merge(); });
});

const Bench kRunning("batch_norm_update_running", kStatistics, [](Timer& t) {
  Layer l(t, Groups::kOne);
  const Tensor row = l.stats.view({l.stats.numel()});
  t.run(3 * row.nbytes(), [&] {
    kernels::batch_norm_update_running(
        l.stream, row, l.pixels(), 0.1F, l.running.mean, l.running.var);
  });
});

void forward(Timer& t, bool adds) {
  Layer l(t, Groups::kOne, adds);
  t.run((adds ? 3 : 2) * l.in.nbytes(), [&] {
    kernels::batch_norm_forward(
        l.stream, l.shards, {l.in, l.stats, l.weight, l.bias, l.added, l.params, l.out});
  });
}
const Bench kForward("batch_norm_forward", kLayers, [](Timer& t) { forward(t, false); });
const Bench kForwardAdd("batch_norm_forward_residual", kLayers, [](Timer& t) { forward(t, true); });

const Bench kInference("batch_norm_inference", kLayers, [](Timer& t) {
  Layer l(t, Groups::kOne);
  t.run(2 * l.in.nbytes(), [&] {
    kernels::batch_norm_inference(
        l.stream,
        l.shards,
        {l.in, l.running.mean, l.running.var, l.weight, l.bias, {}, l.params, l.out});
  });
});

void shard_sums(Timer& t, bool adds) {
  Layer l(t, Groups::kOne, adds);
  t.run((adds ? 4 : 2) * l.in.nbytes(),
        [&] { kernels::batch_norm_shard_sums(l.stream, l.shards, l.sums_by(l.stats)); });
}
const Bench kSums("batch_norm_shard_sums", kLayers, [](Timer& t) { shard_sums(t, false); });
const Bench kSumsAdd("batch_norm_shard_sums_residual", kLayers, [](Timer& t) {
  shard_sums(t, true);
});

const Bench kBackward("batch_norm_backward", kLayers, [](Timer& t) {
  Layer l(t, Groups::kOne);
  const Tensor group_weight = l.grad_weight.slice(0, 1);
  const Tensor group_bias = l.grad_bias.slice(0, 1);
  t.run(3 * l.in.nbytes(), [&] {
    kernels::batch_norm_backward(
        l.stream,
        l.shards,
        {l.in, l.grad, l.stats, group_weight, group_bias, l.weight, l.bias, l.params, l.out});
  });
});

// The passes of a training without synchronized batch norm. The goals on CUDA are set for 3 and 5
// passes.
void shard_forward(Timer& t, bool adds, Activation activation = Activation::kRelu) {
  Layer l(t, Groups::kShards, adds, activation);
  t.run((adds ? 4 : 3) * l.in.nbytes(), [&] {
    kernels::batch_norm_shard_forward(l.stream,
                                      l.shards,
                                      {l.in, {}, l.weight, l.bias, l.params, &l.running, l.leaves},
                                      l.added,
                                      l.out);
  });
}
const Bench kShard("batch_norm_shard_forward", kLayers, [](Timer& t) { shard_forward(t, false); });
const Bench kShardAdd("batch_norm_shard_forward_residual", kLayers, [](Timer& t) {
  shard_forward(t, true);
});
const Bench kShardGelu("batch_norm_shard_forward_gelu", kAirbench, [](Timer& t) {
  shard_forward(t, false, Activation::kGelu);
});

void shard_backward(Timer& t, Layer l, const Tensor& addend = {}) {
  const int tensors = 5 + (l.gated.defined() ? 1 : 0) + (l.gate.defined() ? 1 : 0) +
                      (addend.defined() ? 1 : 0);  // read or written
  t.run(tensors * l.in.nbytes(), [&] {
    kernels::batch_norm_shard_backward(l.stream, l.shards, l.sums_by(l.leaves), addend, l.residual);
  });
}
const Bench kGrad("batch_norm_shard_backward", kLayers, [](Timer& t) {
  shard_backward(t, Layer(t, Groups::kShards));
});
const Bench kGradAdd("batch_norm_shard_backward_residual", kLayers, [](Timer& t) {
  shard_backward(t, Layer(t, Groups::kShards, true));
});
const Bench kGradGelu("batch_norm_shard_backward_gelu", kAirbench, [](Timer& t) {
  shard_backward(t, Layer(t, Groups::kShards, false, Activation::kGelu));
});

// Between two blocks: the branch's gradient is added on the way (Forked).
const Bench kGradFork("batch_norm_shard_backward_forked", kLayers, [](Timer& t) {
  shard_backward(t, Layer(t, Groups::kShards, true), t.random(t.shape(), t.dtype()));
});

const Bench kShardAffine("batch_norm_shard_affine", kAffine, [](Timer& t) {
  Layer l(t, Groups::kShards);
  const Tensor sums = t.random({2, l.shards.local(), t[1]}, Dtype::kF32, 0);
  Tensor affine = t.empty(sums.shape(), t.dtype());
  t.run(sums.nbytes() + l.leaves.nbytes() + affine.nbytes(), [&] {
    kernels::batch_norm_shard_affine(
        l.stream, l.shards, {l.in, sums, l.weight, l.bias, l.params, &l.running, l.leaves}, affine);
  });
});

}  // namespace
}  // namespace lockstep::bench
