#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
#include "kernels/add.h"

namespace lockstep::kernels {
namespace {

void bench_add(benchmark::State& state) {
  Stream stream(Device::kCpu, usable_cores(), true);
  const Tensor src = Tensor::zeros({state.range(0)}, Dtype::kF32);
  Tensor dst = Tensor::zeros({state.range(0)}, Dtype::kF32);
  for (auto _ : state) add(stream, src, dst);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(3 * src.nbytes()));
}
BENCHMARK(bench_add)->Arg(4096)->Arg(401408)->Arg(25690112)->UseRealTime();

const bench::CudaBench kAdd("add",
                            bench::kFloatTypes,
                            bench::kResnetShapes,
                            [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                              const Tensor src = timer.random(shape, dtype);
                              Tensor dst = timer.random(shape, dtype);
                              timer.run(3 * src.nbytes(), [&] { add(timer.stream(), src, dst); });
                            });

}  // namespace
}  // namespace lockstep::kernels
