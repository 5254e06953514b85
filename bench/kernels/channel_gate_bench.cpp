#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
#include "kernels/channel_gate.h"

namespace lockstep::kernels {
namespace {

void bench_channel_gate_forward(benchmark::State& state) {
  Stream stream(Device::kCpu, usable_cores(), true);
  const Shards shards = Shards::cut(32, stream.threads(), 1);
  const int64_t size = state.range(1);
  const Tensor in = Tensor::zeros({32, state.range(0), size, size}, Dtype::kF32);
  const Tensor gate = Tensor::zeros({32, state.range(0)}, Dtype::kF32);
  Tensor out = Tensor::zeros(in.shape(), Dtype::kF32);
  for (auto _ : state) channel_gate_forward(stream, shards, in, gate, out);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(2 * in.nbytes()));
}

void bench_channel_gate_backward(benchmark::State& state) {
  Stream stream(Device::kCpu, usable_cores(), true);
  const Shards shards = Shards::cut(32, stream.threads(), 1);
  const int64_t size = state.range(1);
  const Tensor in = Tensor::zeros({32, state.range(0), size, size}, Dtype::kF32);
  const Tensor gate = Tensor::zeros({32, state.range(0)}, Dtype::kF32);
  Tensor grad_in = Tensor::zeros(in.shape(), Dtype::kF32);
  Tensor grad_gate = Tensor::zeros(gate.shape(), Dtype::kF32);
  for (auto _ : state) channel_gate_backward(stream, shards, {in, in, gate, grad_in, grad_gate});
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(3 * in.nbytes()));
}

// GhostNet's largest and last.
BENCHMARK(bench_channel_gate_forward)->Args({72, 28})->Args({960, 7})->UseRealTime();
BENCHMARK(bench_channel_gate_backward)->Args({72, 28})->Args({960, 7})->UseRealTime();

const std::vector<Shape> kGated = {{256, 120, 28, 28}, {256, 960, 7, 7}};

const bench::CudaBench kCudaForward("channel_gate_forward",
                                    bench::kFloatTypes,
                                    kGated,
                                    [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                                      const Tensor in = timer.random(shape, dtype);
                                      const Tensor gate = timer.random({shape[0], shape[1]}, dtype);
                                      Tensor out = timer.empty(shape, dtype);
                                      const Shards shards = Shards::single(shape[0]);
                                      timer.run(2 * in.nbytes() + gate.nbytes(), [&] {
                                        channel_gate_forward(timer.stream(), shards, in, gate, out);
                                      });
                                    });

const bench::CudaBench kCudaBackward(
    "channel_gate_backward",
    bench::kFloatTypes,
    kGated,
    [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
      const Tensor grad_out = timer.random(shape, dtype);
      const Tensor in = timer.random(shape, dtype);
      const Tensor gate = timer.random({shape[0], shape[1]}, dtype);
      Tensor grad_in = timer.empty(shape, dtype);
      Tensor grad_gate = timer.empty(gate.shape(), dtype);
      const Shards shards = Shards::single(shape[0]);
      timer.run(3 * in.nbytes() + 2 * gate.nbytes(), [&] {
        channel_gate_backward(timer.stream(), shards, {grad_out, in, gate, grad_in, grad_gate});
      });
    });

}  // namespace
}  // namespace lockstep::kernels
