#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/mt19937.h"
#include "core/thread_pool.h"
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
    batch_norm_forward(l.stream, l.shards, {l.in, l.stats, l.weight, l.bias, {}, l.params, l.out});
  }
  set_bytes(state, l, 2);
}

void bench_batch_norm_forward_residual(benchmark::State& state) {
  Layer l(state);
  for (auto _ : state) {
    batch_norm_forward(
        l.stream, l.shards, {l.in, l.stats, l.weight, l.bias, l.grad, l.params, l.out});
  }
  set_bytes(state, l, 3);
}

void bench_batch_norm_shard_sums(benchmark::State& state) {
  Layer l(state);
  Tensor none;
  for (auto _ : state) {
    batch_norm_shard_sums(l.stream,
                          l.shards,
                          {l.in,
                           none,
                           l.grad,
                           l.stats,
                           l.weight,
                           l.bias,
                           l.params,
                           nullptr,
                           l.grad_weight,
                           l.grad_bias});
  }
  set_bytes(state, l, 2);
}

void bench_batch_norm_shard_sums_residual(benchmark::State& state) {
  Layer l(state);
  for (auto _ : state) {
    batch_norm_shard_sums(l.stream,
                          l.shards,
                          {l.in,
                           l.out,
                           l.grad,
                           l.stats,
                           l.weight,
                           l.bias,
                           l.params,
                           &l.grad,
                           l.grad_weight,
                           l.grad_bias});
  }
  set_bytes(state, l, 4);
}

void bench_batch_norm_backward(benchmark::State& state) {
  Layer l(state);
  const Tensor group_weight = l.grad_weight.slice(0, 1);
  const Tensor group_bias = l.grad_bias.slice(0, 1);
  for (auto _ : state) {
    batch_norm_backward(
        l.stream,
        l.shards,
        {l.in, l.grad, l.stats, group_weight, group_bias, l.weight, l.bias, l.params, l.out});
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

// On a CUDA device the ops of one direction together: goals are set for 3 and 5 passes.
struct CudaLayer {
  CudaLayer(bench::CudaTimer& device, const Shape& shape, Dtype dtype)
      : timer(device),
        stream(device.stream()),
        shards(Shards::single(shape[0])),
        in(timer.random(shape, dtype)),
        grad(timer.random(shape, dtype)),
        residual(timer.random(shape, dtype)),
        out(timer.random(shape, dtype)),
        weight(timer.random({shape[1]}, Dtype::kF32)),
        bias(timer.random({shape[1]}, Dtype::kF32)),
        stats(timer.empty({1, 2 * shape[1] + 1}, Dtype::kF32)),
        merged(timer.empty({1, 2 * shape[1] + 1}, Dtype::kF32)),
        grad_weight(timer.empty({1, shape[1]}, Dtype::kF32)),
        grad_bias(timer.empty({1, shape[1]}, Dtype::kF32)) {
    collect_stats();
  }

  void collect_stats() {
    batch_norm_shard_stats(stream, shards, in, stats);
    Tensor row = merged.view({merged.numel()});
    batch_norm_merge_stats(stream, stats, in.shape()[2] * in.shape()[3], row);
  }
  void normalize(const Tensor& added) {
    batch_norm_forward(stream, shards, {in, merged, weight, bias, added, params, out});
  }
  // One shard is its group: its sums are the group's.
  void sum_gradients(const Tensor& gate, Tensor& gated) {
    batch_norm_shard_sums(
        stream,
        shards,
        {in, gate, grad, merged, weight, bias, params, &gated, grad_weight, grad_bias});
  }
  void backward(const BatchNormParams& rest, Tensor& grad_in) {
    batch_norm_backward(
        stream, shards, {in, grad, merged, grad_weight, grad_bias, weight, bias, rest, grad_in});
  }

  bench::CudaTimer& timer;
  Stream& stream;
  Shards shards;
  BatchNormParams params{.relu = true};
  Tensor in, grad, residual, out, weight, bias, stats, merged, grad_weight, grad_bias;
};

const bench::CudaBench kCudaForward("batch_norm_forward",
                                    bench::kFloatTypes,
                                    bench::kResnetShapes,
                                    [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                                      CudaLayer l(timer, shape, dtype);
                                      timer.run(3 * l.in.nbytes(), [&] {
                                        l.collect_stats();
                                        l.normalize({});
                                      });
                                    });

const bench::CudaBench kCudaForwardResidual("batch_norm_forward_residual",
                                            bench::kFloatTypes,
                                            bench::kResnetShapes,
                                            [](bench::CudaTimer& timer,
                                               const Shape& shape,
                                               Dtype dtype) {
                                              CudaLayer l(timer, shape, dtype);
                                              timer.run(4 * l.in.nbytes(), [&] {
                                                l.collect_stats();
                                                l.normalize(l.residual);
                                              });
                                            });

const bench::CudaBench kCudaBackward("batch_norm_backward",
                                     bench::kFloatTypes,
                                     bench::kResnetShapes,
                                     [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                                       CudaLayer l(timer, shape, dtype);
                                       Tensor none;
                                       timer.run(5 * l.in.nbytes(), [&] {
                                         l.sum_gradients({}, none);
                                         l.backward(l.params, l.out);
                                       });
                                     });

const bench::CudaBench kCudaBackwardResidual("batch_norm_backward_residual",
                                             bench::kFloatTypes,
                                             bench::kResnetShapes,
                                             [](bench::CudaTimer& timer,
                                                const Shape& shape,
                                                Dtype dtype) {
                                               CudaLayer l(timer, shape, dtype);
                                               timer.run(7 * l.in.nbytes(), [&] {
                                                 l.sum_gradients(l.out, l.grad);
                                                 l.backward({}, l.residual);
                                               });
                                             });

}  // namespace
}  // namespace lockstep::kernels
