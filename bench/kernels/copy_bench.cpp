#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
#include "kernels/copy.h"

namespace lockstep::kernels {
namespace {

void bench_copy(benchmark::State& state) {
  Stream stream(Device::kCpu, usable_cores(), true);
  const Tensor src = Tensor::zeros({state.range(0)}, Dtype::kF32);
  Tensor dst = Tensor::zeros({state.range(0)}, Dtype::kF32);
  for (auto _ : state) copy(stream, src, dst);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(2 * src.nbytes()));
}
BENCHMARK(bench_copy)->Arg(29034)->Arg(25557032)->UseRealTime();

const bench::CudaBench kCopy("copy",
                             {Dtype::kF32},
                             {{29034}, {25557032}},
                             [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                               const Tensor src = timer.random(shape, dtype);
                               Tensor dst = timer.empty(shape, dtype);
                               timer.run(2 * src.nbytes(), [&] { copy(timer.stream(), src, dst); });
                             });

}  // namespace
}  // namespace lockstep::kernels
