#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
#include "kernels/add_bias.h"

namespace lockstep::kernels {
namespace {

void bench_add_bias(benchmark::State& state) {
  Stream stream(Device::kCpu, usable_cores(), true);
  const Tensor bias = Tensor::zeros({state.range(1)}, Dtype::kF32);
  Tensor values = Tensor::zeros({state.range(0), state.range(1)}, Dtype::kF32);
  for (auto _ : state) add_bias_forward(stream, values, bias, values);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(2 * values.nbytes()));
}
BENCHMARK(bench_add_bias)->Args({64, 1000})->Args({36864, 20})->Args({100352, 64})->UseRealTime();

void bench_add_bias_backward(benchmark::State& state) {
  Stream stream(Device::kCpu, usable_cores(), true);
  const Shards shards = Shards::cut(state.range(0), usable_cores(), 1);
  const Tensor grad_out = Tensor::zeros({state.range(0), state.range(1)}, Dtype::kF32);
  Tensor grad_bias = Tensor::zeros({shards.local(), state.range(1)}, Dtype::kF32);
  for (auto _ : state) add_bias_backward(stream, shards, grad_out, grad_bias);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(grad_out.nbytes()));
}
BENCHMARK(bench_add_bias_backward)
    ->Args({64, 1000})
    ->Args({36864, 20})
    ->Args({100352, 64})
    ->UseRealTime();

const std::vector<Shape> kShapes = {
    {256, 1000}, {256, 4096}, {256, 64, 112, 112}, {256, 512, 14, 14}};

const bench::CudaBench kForward("add_bias_forward",
                                bench::kFloatTypes,
                                kShapes,
                                [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                                  const Tensor bias = timer.random({shape[1]}, Dtype::kF32);
                                  Tensor values = timer.random(shape, dtype);
                                  timer.run(2 * values.nbytes(), [&] {
                                    add_bias_forward(timer.stream(), values, bias, values);
                                  });
                                });

const bench::CudaBench kBackward("add_bias_backward",
                                 bench::kFloatTypes,
                                 kShapes,
                                 [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                                   const Shards shards = Shards::single(shape[0]);
                                   const Tensor grad_out = timer.random(shape, dtype);
                                   Tensor grad_bias = timer.empty({1, shape[1]}, Dtype::kF32);
                                   timer.run(grad_out.nbytes(), [&] {
                                     add_bias_backward(timer.stream(), shards, grad_out, grad_bias);
                                   });
                                 });

}  // namespace
}  // namespace lockstep::kernels
