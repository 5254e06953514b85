#include <benchmark/benchmark.h>

#include "kernels/softmax_cross_entropy.h"

namespace lockstep::kernels {
namespace {

struct Case {
  explicit Case(const benchmark::State& state)
      : shards(Shards::cut(state.range(0), stream.threads(), 1)),
        logits(Tensor::zeros({state.range(0), state.range(1)}, Dtype::kF32)),
        labels(Tensor::zeros({state.range(0)}, Dtype::kI32)),
        losses(Tensor::zeros({state.range(0)}, Dtype::kF32)),
        target_rank(Tensor::zeros({state.range(0)}, Dtype::kI32)),
        leaves(Tensor::zeros({shards.local()}, Dtype::kF32)),
        grad_logits(Tensor::zeros(logits.shape(), Dtype::kF32)) {}

  Stream stream{Device::kCpu, usable_cores(), true};
  Shards shards;
  Tensor logits, labels, losses, target_rank, leaves, grad_logits;
};

void bench_softmax_cross_entropy_forward(benchmark::State& state) {
  Case c(state);
  for (auto _ : state) {
    softmax_cross_entropy_forward(
        c.stream, c.shards, c.logits, c.labels, {}, c.losses, c.target_rank, c.leaves);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void bench_softmax_cross_entropy_backward(benchmark::State& state) {
  Case c(state);
  for (auto _ : state) {
    softmax_cross_entropy_backward(
        c.stream, c.shards, c.logits, c.labels, {}, c.leaves, c.grad_logits);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

BENCHMARK(bench_softmax_cross_entropy_forward)->Args({32, 10})->Args({32, 1000})->UseRealTime();
BENCHMARK(bench_softmax_cross_entropy_backward)->Args({32, 10})->Args({32, 1000})->UseRealTime();

}  // namespace
}  // namespace lockstep::kernels
