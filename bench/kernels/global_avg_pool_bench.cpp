#include <benchmark/benchmark.h>

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

}  // namespace
}  // namespace lockstep::kernels
