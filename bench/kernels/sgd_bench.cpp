#include <vector>

#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
#include "kernels/sgd.h"

namespace lockstep::kernels {
namespace {

// `tensors` parameters of `numel` elements each.
void bench_sgd_step(benchmark::State& state, float momentum) {
  Stream stream(Device::kCpu, usable_cores(), true);
  const int64_t tensors = state.range(0);
  const int64_t numel = state.range(1);
  std::vector<SgdSlot> slots;
  for (int64_t i = 0; i < tensors; ++i) {
    slots.push_back({.param = Tensor::zeros({numel}, Dtype::kF32),
                     .grad = Tensor::zeros({numel}, Dtype::kF32),
                     .momentum = Tensor::zeros({numel}, Dtype::kF32)});
  }
  const SgdParams params = {.lr = 0.1F, .momentum = momentum, .weight_decay = 1e-4F};
  for (auto _ : state) sgd_step(stream, slots, params);
  const int64_t floats = momentum == 0 ? 3 : 5;
  state.SetBytesProcessed(state.iterations() * floats * tensors * numel * 4);
}
BENCHMARK_CAPTURE(bench_sgd_step, plain, 0.0F)->Args({10, 2903})->UseRealTime();
BENCHMARK_CAPTURE(bench_sgd_step, momentum, 0.9F)
    ->Args({10, 2903})
    ->Args({62, 188575})
    ->UseRealTime();

// Four tensors of a quarter of ResNet-50's parameters. Gradients are of `dtype`, and there are
// copies of it if it has 16 bits.
const bench::CudaBench kStep(
    "sgd_step",
    bench::kFloatTypes,
    {{4, 6389000}},
    [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
      std::vector<SgdSlot> slots;
      size_t bytes = 0;
      for (int64_t i = 0; i < shape[0]; ++i) {
        const Shape numel = {shape[1]};
        slots.push_back({.param = timer.random(numel, Dtype::kF32),
                         .grad = timer.random(numel, dtype),
                         .momentum = timer.random(numel, Dtype::kF32),
                         .copy = dtype == Dtype::kF32 ? Tensor() : timer.empty(numel, dtype)});
        bytes += 20 * static_cast<size_t>(shape[1]);
      }
      const SgdParams params = {.lr = 1e-6F, .momentum = 0.9F, .weight_decay = 1e-4F};
      timer.run(bytes, [&] { sgd_step(timer.stream(), slots, params); });
    });

}  // namespace
}  // namespace lockstep::kernels
