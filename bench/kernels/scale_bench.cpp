#include <benchmark/benchmark.h>

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

}  // namespace
}  // namespace lockstep::kernels
