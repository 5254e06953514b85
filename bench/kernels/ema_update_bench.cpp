#include <vector>

#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
#include "kernels/ema_update.h"

namespace lockstep::kernels {
namespace {

// `tensors` parameters of `numel` elements each.
void bench_ema_update(benchmark::State& state) {
  Stream stream(Device::kCpu, usable_cores(), true);
  const int64_t tensors = state.range(0);
  const int64_t numel = state.range(1);
  std::vector<EmaSlot> slots;
  for (int64_t i = 0; i < tensors; ++i) {
    slots.push_back(
        {.param = Tensor::zeros({numel}, Dtype::kF32), .ema = Tensor::zeros({numel}, Dtype::kF32)});
  }
  for (auto _ : state) ema_update(stream, slots, {});
  state.SetBytesProcessed(state.iterations() * 3 * tensors * numel * 4);
}
BENCHMARK(bench_ema_update)->Args({10, 2903})->Args({62, 188575})->UseRealTime();

const bench::CudaBench kUpdate("ema_update",
                               {Dtype::kF32},
                               {{25557032}},
                               [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                                 std::vector<EmaSlot> slots = {{.param = timer.random(shape, dtype),
                                                                .ema = timer.random(shape, dtype)}};
                                 timer.run(3 * slots[0].param.nbytes(),
                                           [&] { ema_update(timer.stream(), slots, {}); });
                               });

}  // namespace
}  // namespace lockstep::kernels
