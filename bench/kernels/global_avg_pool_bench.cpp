#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
#include "kernels/global_avg_pool.h"

namespace lockstep::kernels {
namespace {

void bench_global_avg_pool_forward(benchmark::State& state) {
  Stream stream(Device::kCpu, usable_cores(), true);
  const Shards shards = Shards::cut(state.range(0), stream.threads(), 1);
  const Tensor in = Tensor::zeros({state.range(0), state.range(1), 7, 7}, Dtype::kF32);
  Tensor out = Tensor::zeros({state.range(0), state.range(1)}, Dtype::kF32);
  for (auto _ : state) global_avg_pool_forward(stream, shards, in, out);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(in.nbytes() + out.nbytes()));
}

void bench_global_avg_pool_backward(benchmark::State& state) {
  Stream stream(Device::kCpu, usable_cores(), true);
  const Shards shards = Shards::cut(state.range(0), stream.threads(), 1);
  const Tensor grad_out = Tensor::zeros({state.range(0), state.range(1)}, Dtype::kF32);
  Tensor grad_in = Tensor::zeros({state.range(0), state.range(1), 7, 7}, Dtype::kF32);
  for (auto _ : state) global_avg_pool_backward(stream, shards, grad_out, grad_in);
  state.SetBytesProcessed(state.iterations() *
                          static_cast<int64_t>(grad_in.nbytes() + grad_out.nbytes()));
}

BENCHMARK(bench_global_avg_pool_forward)->Args({32, 512})->Args({8, 2048})->UseRealTime();
BENCHMARK(bench_global_avg_pool_backward)->Args({32, 512})->Args({8, 2048})->UseRealTime();

const std::vector<Shape> kLastStage = {{256, 2048, 7, 7}};

const bench::CudaBench kCudaForward("global_avg_pool_forward",
                                    bench::kFloatTypes,
                                    kLastStage,
                                    [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                                      const Tensor in = timer.random(shape, dtype);
                                      Tensor out = timer.empty({shape[0], shape[1]}, dtype);
                                      const Shards shards = Shards::single(shape[0]);
                                      timer.run(in.nbytes() + out.nbytes(), [&] {
                                        global_avg_pool_forward(timer.stream(), shards, in, out);
                                      });
                                    });

const bench::CudaBench kCudaBackward("global_avg_pool_backward",
                                     bench::kFloatTypes,
                                     kLastStage,
                                     [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                                       const Tensor grad_out =
                                           timer.random({shape[0], shape[1]}, dtype);
                                       Tensor grad_in = timer.empty(shape, dtype);
                                       const Shards shards = Shards::single(shape[0]);
                                       timer.run(grad_in.nbytes() + grad_out.nbytes(), [&] {
                                         global_avg_pool_backward(
                                             timer.stream(), shards, grad_out, grad_in);
                                       });
                                     });

}  // namespace
}  // namespace lockstep::kernels
