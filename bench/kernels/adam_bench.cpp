#include <vector>

#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
#include "kernels/adam.h"

namespace lockstep::kernels {
namespace {

// `tensors` parameters of `numel` elements each.
void bench_adam_step(benchmark::State& state) {
  Stream stream(Device::kCpu, usable_cores(), true);
  const int64_t tensors = state.range(0);
  const int64_t numel = state.range(1);
  std::vector<AdamSlot> slots;
  for (int64_t i = 0; i < tensors; ++i) {
    slots.push_back({.param = Tensor::zeros({numel}, Dtype::kF32),
                     .grad = Tensor::zeros({numel}, Dtype::kF32),
                     .exp_avg = Tensor::zeros({numel}, Dtype::kF32),
                     .exp_avg_sq = Tensor::zeros({numel}, Dtype::kF32)});
  }
  int64_t step = 0;
  for (auto _ : state) adam_step(stream, slots, {.weight_decay = 1e-2, .decoupled = true}, ++step);
  state.SetBytesProcessed(state.iterations() * 7 * tensors * numel * 4);
}
BENCHMARK(bench_adam_step)->Args({10, 2903})->Args({62, 188575})->UseRealTime();

// Four tensors of a quarter of ResNet-50's parameters. Gradients are of `dtype`, and there are
// copies of it if it has 16 bits.
const bench::CudaBench kStep(
    "adam_step",
    bench::kFloatTypes,
    {{4, 6389000}},
    [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
      std::vector<AdamSlot> slots;
      size_t bytes = 0;
      for (int64_t i = 0; i < shape[0]; ++i) {
        const Shape numel = {shape[1]};
        slots.push_back({.param = timer.random(numel, Dtype::kF32),
                         .grad = timer.random(numel, dtype),
                         .exp_avg = timer.random(numel, Dtype::kF32),
                         .exp_avg_sq = timer.random(numel, Dtype::kF32, 0),
                         .copy = dtype == Dtype::kF32 ? Tensor() : timer.empty(numel, dtype)});
        bytes += 28 * static_cast<size_t>(shape[1]);
      }
      timer.run(bytes, [&] { adam_step(timer.stream(), slots, {.lr = 1e-6}, 100); });
    });

}  // namespace
}  // namespace lockstep::kernels
