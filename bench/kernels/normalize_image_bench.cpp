#include <vector>

#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
#include "kernels/normalize_image.h"

namespace lockstep::kernels {
namespace {

void bench_normalize_image(benchmark::State& state) {
  Stream stream(Device::kCpu, usable_cores(), true);
  const int64_t channels = state.range(1);
  const Shards shards = Shards::cut(state.range(0), stream.threads(), 1);
  const Tensor in =
      Tensor::zeros({state.range(0), channels, state.range(2), state.range(2)}, Dtype::kU8);
  Tensor out = Tensor::zeros(in.shape(), Dtype::kF32);
  const NormalizeImageParams params = {
      .mean = std::vector<float>(static_cast<size_t>(channels), 0.5F),
      .std = std::vector<float>(static_cast<size_t>(channels), 0.25F)};
  for (auto _ : state) normalize_image(stream, shards, in, params, out);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(in.nbytes() + out.nbytes()));
}
BENCHMARK(bench_normalize_image)->Args({32, 1, 28})->Args({32, 3, 224})->UseRealTime();

const bench::CudaBench kCuda("normalize_image",
                             bench::kFloatTypes,
                             {{256, 3, 224, 224}},
                             [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                               const Tensor in = timer.empty(shape, Dtype::kU8);
                               Tensor out = timer.empty(shape, dtype);
                               const NormalizeImageParams params = {.mean = std::vector(3, 0.5F),
                                                                    .std = std::vector(3, 0.25F)};
                               timer.run(in.nbytes() + out.nbytes(), [&] {
                                 normalize_image(
                                     timer.stream(), Shards::single(shape[0]), in, params, out);
                               });
                             });

}  // namespace
}  // namespace lockstep::kernels
