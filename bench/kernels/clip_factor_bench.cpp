#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "kernels/clip_factor.h"

namespace lockstep::kernels {
namespace {

void bench_clip_factor(benchmark::State& state) {
  Stream stream;
  const Tensor norms = Tensor::zeros({2}, Dtype::kF32);
  Tensor factor = Tensor::zeros({1}, Dtype::kF32);
  for (auto _ : state) clip_factor(stream, norms, 1, {}, factor);
}
BENCHMARK(bench_clip_factor)->UseRealTime();

const bench::CudaBench kClipFactor("clip_factor",
                                   {Dtype::kF32},
                                   {{2}},
                                   [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                                     const Tensor norms = timer.random(shape, dtype);
                                     Tensor factor = timer.empty({1}, dtype);
                                     timer.run(2 * sizeof(float), [&] {
                                       clip_factor(timer.stream(), norms, 1, {}, factor);
                                     });
                                   });

}  // namespace
}  // namespace lockstep::kernels
