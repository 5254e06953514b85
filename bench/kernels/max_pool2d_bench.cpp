#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
#include "kernels/max_pool2d.h"

namespace lockstep::kernels {
namespace {

constexpr MaxPool2dParams k2x2 = {2, 2, 2, 2, 0, 0};
constexpr MaxPool2dParams k3x3 = {3, 3, 2, 2, 1, 1};

struct Case {
  Case(const benchmark::State& state, const MaxPool2dParams& params)
      : shards(Shards::cut(state.range(0), stream.threads(), 1)),
        in(Tensor::zeros({state.range(0), state.range(1), state.range(2), state.range(2)},
                         Dtype::kF32)),
        out(Tensor::zeros(max_pool2d_output_shape(in.shape(), params), Dtype::kF32)),
        winner(Tensor::zeros(out.shape(), Dtype::kU8)) {}

  int64_t bytes() const {
    return static_cast<int64_t>(in.nbytes() + out.nbytes() + winner.nbytes());
  }

  Stream stream{Device::kCpu, usable_cores(), true};
  Shards shards;
  Tensor in, out, winner;
};

void bench_max_pool2d_forward(benchmark::State& state, const MaxPool2dParams& params) {
  Case c(state, params);
  for (auto _ : state) max_pool2d_forward(c.stream, c.shards, c.in, params, c.out, c.winner);
  state.SetBytesProcessed(state.iterations() * c.bytes());
}

void bench_max_pool2d_backward(benchmark::State& state, const MaxPool2dParams& params) {
  Case c(state, params);
  for (auto _ : state) max_pool2d_backward(c.stream, c.shards, c.out, c.winner, params, c.in);
  state.SetBytesProcessed(state.iterations() * c.bytes());
}

void convnet(benchmark::internal::Benchmark* bench) {
  bench->Args({32, 16, 28})->Args({32, 32, 14})->UseRealTime();
}
void resnet(benchmark::internal::Benchmark* bench) {
  bench->Args({8, 64, 112})->UseRealTime();
}
BENCHMARK_CAPTURE(bench_max_pool2d_forward, 2x2, k2x2)->Apply(convnet);
BENCHMARK_CAPTURE(bench_max_pool2d_backward, 2x2, k2x2)->Apply(convnet);
BENCHMARK_CAPTURE(bench_max_pool2d_forward, 3x3, k3x3)->Apply(resnet);
BENCHMARK_CAPTURE(bench_max_pool2d_backward, 3x3, k3x3)->Apply(resnet);

// ResNet's, behind its stem.
const std::vector<Shape> kStem = {{256, 64, 112, 112}};

const bench::CudaBench kCudaForward("max_pool2d_forward",
                                    bench::kFloatTypes,
                                    kStem,
                                    [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                                      const Tensor in = timer.random(shape, dtype);
                                      Tensor out =
                                          timer.empty(max_pool2d_output_shape(shape, k3x3), dtype);
                                      Tensor winner = timer.empty(out.shape(), Dtype::kU8);
                                      const Shards shards = Shards::single(shape[0]);
                                      timer.run(in.nbytes() + out.nbytes() + winner.nbytes(), [&] {
                                        max_pool2d_forward(
                                            timer.stream(), shards, in, k3x3, out, winner);
                                      });
                                    });

const bench::CudaBench kCudaBackward(
    "max_pool2d_backward",
    bench::kFloatTypes,
    kStem,
    [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
      const Tensor in = timer.random(shape, dtype);
      Tensor out = timer.empty(max_pool2d_output_shape(shape, k3x3), dtype);
      Tensor winner = timer.empty(out.shape(), Dtype::kU8);
      const Shards shards = Shards::single(shape[0]);
      max_pool2d_forward(timer.stream(), shards, in, k3x3, out, winner);
      Tensor grad_in = timer.empty(shape, dtype);
      timer.run(grad_in.nbytes() + out.nbytes() + winner.nbytes(),
                [&] { max_pool2d_backward(timer.stream(), shards, out, winner, k3x3, grad_in); });
    });

}  // namespace
}  // namespace lockstep::kernels
