#include <vector>

#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
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

// As many parameters as ResNet-50 has tensors, each of the mean size.
const std::vector<Shape> kResnetParameters = {{161, 158'744}};

const bench::CudaBench kCudaStep(
    "adam_step",
    {Dtype::kF32},
    kResnetParameters,
    [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
      std::vector<AdamSlot> slots;
      for (int64_t i = 0; i < shape[0]; ++i) {
        slots.push_back({.param = timer.random({shape[1]}, dtype),
                         .grad = timer.random({shape[1]}, dtype),
                         .exp_avg = timer.random({shape[1]}, dtype),
                         .exp_avg_sq = timer.random({shape[1]}, dtype, 0)});
      }
      int64_t step = 0;
      timer.run(7 * slots.size() * slots[0].param.nbytes(), [&] {
        adam_step(timer.stream(), slots, {.weight_decay = 1e-2, .decoupled = true}, ++step);
      });
    });

}  // namespace
}  // namespace lockstep::kernels
