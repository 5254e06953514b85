#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "kernels/larc_factors.h"

namespace lockstep::kernels {
namespace {

constexpr int64_t kTensors = 161;  // of a ResNet-50

void bench_larc_factors(benchmark::State& state) {
  Stream stream;
  const Tensor norms = Tensor::zeros({2 * kTensors + 1}, Dtype::kF32);
  const Tensor decays = Tensor::zeros({kTensors}, Dtype::kF32);
  Tensor factors = Tensor::zeros({kTensors}, Dtype::kF32);
  for (auto _ : state) larc_factors(stream, norms, decays, {}, factors);
}
BENCHMARK(bench_larc_factors)->UseRealTime();

const bench::CudaBench kLarcFactors("larc_factors",
                                    {Dtype::kF32},
                                    {{kTensors}},
                                    [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                                      const Tensor norms = timer.random({2 * shape[0] + 1}, dtype);
                                      const Tensor decays = timer.random(shape, dtype);
                                      Tensor factors = timer.empty(shape, dtype);
                                      timer.run(4 * sizeof(float) * static_cast<size_t>(shape[0]),
                                                [&] {
                                                  larc_factors(
                                                      timer.stream(), norms, decays, {}, factors);
                                                });
                                    });

}  // namespace
}  // namespace lockstep::kernels
