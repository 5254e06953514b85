#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
#include "kernels/fill_uniform.h"

namespace lockstep::kernels {
namespace {

void bench_fill_uniform(benchmark::State& state) {
  Stream stream(Device::kCpu, usable_cores(), true);
  Tensor out = Tensor::zeros({state.range(0)}, Dtype::kF32);
  FillUniformParams params = {.seed = 1, .purpose = RandomPurpose::kSynthetic};
  for (auto _ : state) {
    fill_uniform(stream, params, out);
    ++params.epoch;
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(out.nbytes()));
}
BENCHMARK(bench_fill_uniform)->Arg(29034)->Arg(25557032)->UseRealTime();

const bench::CudaBench kFillUniform("fill_uniform",
                                    bench::kFloatTypes,
                                    {{25557032}},
                                    [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                                      Tensor out = timer.empty(shape, dtype);
                                      const FillUniformParams params = {
                                          .seed = 1, .purpose = RandomPurpose::kSynthetic};
                                      timer.run(out.nbytes(),
                                                [&] { fill_uniform(timer.stream(), params, out); });
                                    });

}  // namespace
}  // namespace lockstep::kernels
