#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
#include "kernels/fill.h"

namespace lockstep::kernels {
namespace {

void bench_fill(benchmark::State& state) {
  Stream stream(Device::kCpu, usable_cores(), true);
  Tensor out = Tensor::zeros({state.range(0)}, Dtype::kF32);
  for (auto _ : state) fill(stream, 1, out);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(out.nbytes()));
}
BENCHMARK(bench_fill)->Arg(29034)->Arg(25557032)->UseRealTime();

const bench::CudaBench kFill("fill",
                             bench::kFloatTypes,
                             {{25557032}},
                             [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                               Tensor out = timer.empty(shape, dtype);
                               timer.run(out.nbytes(), [&] { fill(timer.stream(), 1, out); });
                             });

}  // namespace
}  // namespace lockstep::kernels
