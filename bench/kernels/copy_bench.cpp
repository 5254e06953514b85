#include <benchmark/benchmark.h>

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

}  // namespace
}  // namespace lockstep::kernels
