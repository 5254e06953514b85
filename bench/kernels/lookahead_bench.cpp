#include <vector>

#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
#include "kernels/lookahead.h"

namespace lockstep::kernels {
namespace {

// `tensors` parameters of `numel` elements each.
void bench_lookahead_sync(benchmark::State& state) {
  Stream stream(Device::kCpu, usable_cores(), true);
  const int64_t tensors = state.range(0);
  const int64_t numel = state.range(1);
  std::vector<LookaheadSlot> slots;
  for (int64_t i = 0; i < tensors; ++i) {
    slots.push_back({.param = Tensor::zeros({numel}, Dtype::kF32),
                     .slow = Tensor::zeros({numel}, Dtype::kF32)});
  }
  for (auto _ : state) lookahead_sync(stream, slots, {.alpha = 0.5F});
  state.SetBytesProcessed(state.iterations() * 4 * tensors * numel * 4);
}
BENCHMARK(bench_lookahead_sync)->Args({10, 2903})->Args({62, 188575})->UseRealTime();

const bench::CudaBench kSync("lookahead_sync",
                             {Dtype::kF32},
                             {{25557032}},
                             [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                               std::vector<LookaheadSlot> slots = {
                                   {.param = timer.random(shape, dtype),
                                    .slow = timer.random(shape, dtype)}};
                               timer.run(4 * slots[0].param.nbytes(),
                                         [&] { lookahead_sync(timer.stream(), slots, {}); });
                             });

}  // namespace
}  // namespace lockstep::kernels
