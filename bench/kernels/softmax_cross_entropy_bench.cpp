#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
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
        c.stream, c.shards, {c.logits, c.labels}, c.losses, c.target_rank, c.leaves);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void bench_softmax_cross_entropy_backward(benchmark::State& state) {
  Case c(state);
  for (auto _ : state) {
    softmax_cross_entropy_backward(
        c.stream, c.shards, {c.logits, c.labels}, c.leaves, c.grad_logits);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

BENCHMARK(bench_softmax_cross_entropy_forward)->Args({32, 10})->Args({32, 1000})->UseRealTime();
BENCHMARK(bench_softmax_cross_entropy_backward)->Args({32, 10})->Args({32, 1000})->UseRealTime();

// ImageNet's classes, and so many that memory binds.
const std::vector<Shape> kLogits = {{256, 1000}, {65536, 1000}};

struct CudaCase {
  CudaCase(bench::CudaTimer& timer, const Shape& shape, Dtype dtype)
      : shards(Shards::single(shape[0])),
        logits(timer.random(shape, dtype)),
        labels(timer.random_indices({shape[0]}, static_cast<int32_t>(shape[1]))),
        losses(timer.empty({shape[0]}, Dtype::kF32)),
        target_rank(timer.empty({shape[0]}, Dtype::kI32)),
        leaves(timer.random({1}, Dtype::kF32)),
        grad_logits(timer.empty(shape, dtype)) {}

  Shards shards;
  Tensor logits, labels, losses, target_rank, leaves, grad_logits;
};

const bench::CudaBench kCudaForward(
    "softmax_cross_entropy_forward",
    bench::kFloatTypes,
    kLogits,
    [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
      CudaCase c(timer, shape, dtype);
      timer.run(c.logits.nbytes() + 3 * c.labels.nbytes(), [&] {
        softmax_cross_entropy_forward(
            timer.stream(), c.shards, {c.logits, c.labels}, c.losses, c.target_rank, c.leaves);
      });
    });

const bench::CudaBench kCudaBackward("softmax_cross_entropy_backward",
                                     bench::kFloatTypes,
                                     kLogits,
                                     [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                                       CudaCase c(timer, shape, dtype);
                                       timer.run(2 * c.logits.nbytes() + c.labels.nbytes(), [&] {
                                         softmax_cross_entropy_backward(timer.stream(),
                                                                        c.shards,
                                                                        {c.logits, c.labels},
                                                                        c.leaves,
                                                                        c.grad_logits);
                                       });
                                     });

}  // namespace
}  // namespace lockstep::kernels
