#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
#include "kernels/mix_images.h"

namespace lockstep::kernels {
namespace {

void bench_mix_images(benchmark::State& state) {
  Stream stream(Device::kCpu, usable_cores(), true);
  const Shape shape{state.range(0), 3, state.range(1), state.range(1)};
  const Shards shards = Shards::cut(shape[0], stream.threads(), 1);
  const Tensor mix = Tensor::zeros({1}, Dtype::kF32);
  Tensor images = Tensor::zeros(shape, Dtype::kF32);
  for (auto _ : state) mix_images(stream, shards, mix, images);
  state.SetBytesProcessed(state.iterations() * 2 * static_cast<int64_t>(images.nbytes()));
}
BENCHMARK(bench_mix_images)->Args({64, 32})->Args({32, 224})->UseRealTime();

const bench::CudaBench kMixImages("mix_images",
                                  {Dtype::kF32, Dtype::kF16},
                                  {{256, 3, 224, 224}},
                                  [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                                    const Tensor mix = timer.random({1}, Dtype::kF32);
                                    const Shards shards = Shards::single(shape[0]);
                                    Tensor images = timer.random(shape, dtype);
                                    timer.run(2 * images.nbytes(), [&] {
                                      mix_images(timer.stream(), shards, mix, images);
                                    });
                                  });

}  // namespace
}  // namespace lockstep::kernels
