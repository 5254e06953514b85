#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
#include "kernels/concat_channels.h"

namespace lockstep::kernels {
namespace {

void bench_concat_channels_forward(benchmark::State& state) {
  Stream stream(Device::kCpu, usable_cores(), true);
  const Shards shards = Shards::cut(32, stream.threads(), 1);
  const int64_t size = state.range(1);
  const Tensor part = Tensor::zeros({32, state.range(0), size, size}, Dtype::kF32);
  Tensor out = Tensor::zeros({32, 2 * state.range(0), size, size}, Dtype::kF32);
  for (auto _ : state) concat_channels_forward(stream, shards, part, part, out);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(2 * out.nbytes()));
}
// GhostNet's largest and last.
BENCHMARK(bench_concat_channels_forward)->Args({24, 112})->Args({480, 7})->UseRealTime();

const std::vector<Shape> kGhostParts = {{256, 24, 112, 112}, {256, 480, 7, 7}};

Shape twice(const Shape& part) {
  return {part[0], 2 * part[1], part[2], part[3]};
}

const bench::CudaBench kCudaForward("concat_channels_forward",
                                    bench::kFloatTypes,
                                    kGhostParts,
                                    [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                                      const Tensor a = timer.random(shape, dtype);
                                      const Tensor b = timer.random(shape, dtype);
                                      Tensor out = timer.empty(twice(shape), dtype);
                                      const Shards shards = Shards::single(shape[0]);
                                      timer.run(2 * out.nbytes(), [&] {
                                        concat_channels_forward(timer.stream(), shards, a, b, out);
                                      });
                                    });

const bench::CudaBench kCudaBackward("concat_channels_backward",
                                     bench::kFloatTypes,
                                     kGhostParts,
                                     [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                                       const Tensor grad_out = timer.random(twice(shape), dtype);
                                       Tensor grad_a = timer.empty(shape, dtype);
                                       Tensor grad_b = timer.empty(shape, dtype);
                                       const Shards shards = Shards::single(shape[0]);
                                       timer.run(2 * grad_out.nbytes(), [&] {
                                         concat_channels_backward(
                                             timer.stream(), shards, grad_out, grad_a, grad_b);
                                       });
                                     });

}  // namespace
}  // namespace lockstep::kernels
