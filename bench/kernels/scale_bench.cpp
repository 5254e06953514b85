#include <benchmark/benchmark.h>

#include "kernels/scale.h"

namespace lockstep::kernels {
namespace {

void bench_scale(benchmark::State& state, Dtype dtype) {
  Stream stream(Device::kCpu, usable_cores(), true);
  Tensor values = Tensor::zeros({state.range(0)}, dtype);
  for (auto _ : state) scale(stream, 0.5F, values);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(2 * values.nbytes()));
}
BENCHMARK_CAPTURE(bench_scale, f32, Dtype::kF32)->Arg(401408)->Arg(25557032)->UseRealTime();
BENCHMARK_CAPTURE(bench_scale, f16, Dtype::kF16)->Arg(401408)->UseRealTime();

}  // namespace
}  // namespace lockstep::kernels
