#include <benchmark/benchmark.h>

#include "core/mt19937.h"
#include "kernels/batch_norm.h"

namespace lockstep::kernels {
namespace {

// Tensors of one layer: as many shards as cores, one group.
struct Layer {
  explicit Layer(const benchmark::State& state)
      : stream(Device::kCpu, usable_cores(), true),
        shards(Shards::cut(state.range(0), stream.threads(), 1)),
        in(random({state.range(0), state.range(1), state.range(2), state.range(2)})),
        grad(random(in.shape())),
        out(random(in.shape())),
        weight(random({state.range(1)})),
        bias(random({state.range(1)})),
        leaves(random({shards.local(), 2 * state.range(1) + 1})),
        stats(random({1, 2 * state.range(1) + 1})),
        grad_weight(random({shards.local(), state.range(1)})),
        grad_bias(random({shards.local(), state.range(1)})) {
    batch_norm_shard_stats(stream, shards, in, leaves);
    Tensor merged = stats.view({stats.numel()});
    batch_norm_merge_stats(stream, leaves, state.range(2) * state.range(2), merged);
  }

  static Tensor random(const Shape& shape) {
    Tensor tensor = Tensor::empty(shape, Dtype::kF32);
    Mt19937(1).uniform(tensor.span<float>(), -1, 1);
    return tensor;
  }

  Stream stream;
  Shards shards;
  BatchNormParams params{.relu = true};
  Tensor in, grad, out, weight, bias, leaves, stats, grad_weight, grad_bias;
};

// `touched` counts the batch tensors that a call reads and writes.
void set_bytes(benchmark::State& state, const Layer& layer, int64_t touched) {
  state.SetBytesProcessed(state.iterations() * touched * static_cast<int64_t>(layer.in.nbytes()));
}

void bench_batch_norm_shard_stats(benchmark::State& state) {
  Layer l(state);
  for (auto _ : state) batch_norm_shard_stats(l.stream, l.shards, l.in, l.leaves);
  set_bytes(state, l, 1);
}

void bench_batch_norm_forward(benchmark::State& state) {
  Layer l(state);
  for (auto _ : state) {
    batch_norm_forward(l.stream, l.shards, l.in, l.stats, l.weight, l.bias, {}, l.params, l.out);
  }
  set_bytes(state, l, 2);
}

void bench_batch_norm_forward_residual(benchmark::State& state) {
  Layer l(state);
  for (auto _ : state) {
    batch_norm_forward(
        l.stream, l.shards, l.in, l.stats, l.weight, l.bias, l.grad, l.params, l.out);
  }
  set_bytes(state, l, 3);
}

void bench_batch_norm_shard_sums(benchmark::State& state) {
  Layer l(state);
  Tensor none;
  for (auto _ : state) {
    batch_norm_shard_sums(l.stream,
                          l.shards,
                          l.in,
                          none,
                          l.grad,
                          l.stats,
                          l.weight,
                          l.bias,
                          l.params,
                          none,
                          l.grad_weight,
                          l.grad_bias);
  }
  set_bytes(state, l, 2);
}

void bench_batch_norm_shard_sums_residual(benchmark::State& state) {
  Layer l(state);
  for (auto _ : state) {
    batch_norm_shard_sums(l.stream,
                          l.shards,
                          l.in,
                          l.out,
                          l.grad,
                          l.stats,
                          l.weight,
                          l.bias,
                          l.params,
                          l.grad,
                          l.grad_weight,
                          l.grad_bias);
  }
  set_bytes(state, l, 4);
}

void bench_batch_norm_backward(benchmark::State& state) {
  Layer l(state);
  const Tensor group_weight = l.grad_weight.slice(0, 1);
  const Tensor group_bias = l.grad_bias.slice(0, 1);
  for (auto _ : state) {
    batch_norm_backward(l.stream,
                        l.shards,
                        l.in,
                        l.grad,
                        l.stats,
                        group_weight,
                        group_bias,
                        l.weight,
                        l.bias,
                        l.params,
                        l.out);
  }
  set_bytes(state, l, 3);
}

void layers(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"n", "c", "hw"})->UseRealTime();
  bench->Args({32, 16, 28})->Args({32, 32, 14})->Args({32, 64, 56});
  bench->Args({32, 10, 28})->Args({32, 512, 7});
  bench->Args({128, 64, 32});                        // ResNet-18, CIFAR
  bench->Args({32, 64, 112})->Args({32, 1024, 14});  // ResNet-50
}
BENCHMARK(bench_batch_norm_shard_stats)->Apply(layers);
BENCHMARK(bench_batch_norm_forward)->Apply(layers);
BENCHMARK(bench_batch_norm_forward_residual)->Apply(layers);
BENCHMARK(bench_batch_norm_shard_sums)->Apply(layers);
BENCHMARK(bench_batch_norm_shard_sums_residual)->Apply(layers);
BENCHMARK(bench_batch_norm_backward)->Apply(layers);

}  // namespace
}  // namespace lockstep::kernels
