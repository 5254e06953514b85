#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
#include "kernels/adaptive_avg_pool2d.h"

namespace lockstep::kernels {
namespace {

// AlexNet's and VGG's images of 256 pixels, where windows overlap.
void bench_adaptive_avg_pool2d_forward(benchmark::State& state) {
  Stream stream(Device::kCpu, usable_cores(), true);
  const int64_t size = state.range(1);
  const Shards shards = Shards::cut(32, stream.threads(), 1);
  const Tensor in = Tensor::zeros({32, state.range(0), size + 1, size + 1}, Dtype::kF32);
  Tensor out = Tensor::zeros({32, state.range(0), size, size}, Dtype::kF32);
  for (auto _ : state) adaptive_avg_pool2d_forward(stream, shards, in, out);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(in.nbytes() + out.nbytes()));
}

void bench_adaptive_avg_pool2d_backward(benchmark::State& state) {
  Stream stream(Device::kCpu, usable_cores(), true);
  const int64_t size = state.range(1);
  const Shards shards = Shards::cut(32, stream.threads(), 1);
  const Tensor grad_out = Tensor::zeros({32, state.range(0), size, size}, Dtype::kF32);
  Tensor grad_in = Tensor::zeros({32, state.range(0), size + 1, size + 1}, Dtype::kF32);
  for (auto _ : state) adaptive_avg_pool2d_backward(stream, shards, grad_out, grad_in);
  state.SetBytesProcessed(state.iterations() *
                          static_cast<int64_t>(grad_in.nbytes() + grad_out.nbytes()));
}

BENCHMARK(bench_adaptive_avg_pool2d_forward)->Args({256, 6})->Args({512, 7})->UseRealTime();
BENCHMARK(bench_adaptive_avg_pool2d_backward)->Args({256, 6})->Args({512, 7})->UseRealTime();

const std::vector<Shape> kLastMaps = {{256, 512, 8, 8}};
constexpr int64_t kWindows = 7;

const bench::CudaBench kCudaForward("adaptive_avg_pool2d_forward",
                                    bench::kFloatTypes,
                                    kLastMaps,
                                    [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                                      const Tensor in = timer.random(shape, dtype);
                                      Tensor out = timer.empty(
                                          {shape[0], shape[1], kWindows, kWindows}, dtype);
                                      const Shards shards = Shards::single(shape[0]);
                                      timer.run(in.nbytes() + out.nbytes(), [&] {
                                        adaptive_avg_pool2d_forward(
                                            timer.stream(), shards, in, out);
                                      });
                                    });

const bench::CudaBench kCudaBackward("adaptive_avg_pool2d_backward",
                                     bench::kFloatTypes,
                                     kLastMaps,
                                     [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                                       const Tensor grad_out = timer.random(
                                           {shape[0], shape[1], kWindows, kWindows}, dtype);
                                       Tensor grad_in = timer.empty(shape, dtype);
                                       const Shards shards = Shards::single(shape[0]);
                                       timer.run(grad_in.nbytes() + grad_out.nbytes(), [&] {
                                         adaptive_avg_pool2d_backward(
                                             timer.stream(), shards, grad_out, grad_in);
                                       });
                                     });

}  // namespace
}  // namespace lockstep::kernels
