#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
#include "kernels/scale.h"

namespace lockstep::kernels {
namespace {

void bench_scale(benchmark::State& state) {
  Stream stream(Device::kCpu, usable_cores(), true);
  Tensor values = Tensor::zeros({state.range(0)}, Dtype::kF32);
  for (auto _ : state) scale(stream, 0.5F, values);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(2 * values.nbytes()));
}
BENCHMARK(bench_scale)->Arg(401408)->Arg(25557032)->UseRealTime();

const bench::CudaBench kScale("scale",
                              {Dtype::kF32},
                              {{25557032}},
                              [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                                Tensor values = timer.random(shape, dtype);
                                timer.run(2 * values.nbytes(),
                                          [&] { scale(timer.stream(), 0.5F, values); });
                              });

}  // namespace
}  // namespace lockstep::kernels
