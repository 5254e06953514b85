#include <benchmark/benchmark.h>

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

}  // namespace
}  // namespace lockstep::kernels
