#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
#include "kernels/subsample_pad.h"

namespace lockstep::kernels {
namespace {

// From c channels of hw x hw pixels to twice as many on a quarter of the pixels.
struct Shortcut {
  explicit Shortcut(const benchmark::State& state)
      : in(Tensor::zeros({state.range(0), state.range(1), state.range(2), state.range(2)},
                         Dtype::kF32)),
        out(Tensor::zeros(subsample_pad_output_shape(in.shape(), 2 * state.range(1), 2),
                          Dtype::kF32)) {}

  Stream stream{Device::kCpu, usable_cores(), true};
  Tensor in, out;
  Shards shards = Shards::cut(in.shape()[0], stream.threads(), 1);
};

void bench_subsample_pad_forward(benchmark::State& state) {
  Shortcut s(state);
  for (auto _ : state) subsample_pad_forward(s.stream, s.shards, s.in, 2, s.out);
  state.SetBytesProcessed(state.iterations() *
                          static_cast<int64_t>(s.in.nbytes() / 4 + s.out.nbytes()));
}

void bench_subsample_pad_backward(benchmark::State& state) {
  Shortcut s(state);
  for (auto _ : state) subsample_pad_backward(s.stream, s.shards, s.out, 2, s.in);
  state.SetBytesProcessed(state.iterations() *
                          static_cast<int64_t>(s.in.nbytes() + s.out.nbytes() / 2));
}

void shortcuts(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"n", "c", "hw"})->UseRealTime()->Args({128, 16, 32})->Args({128, 32, 16});
}
BENCHMARK(bench_subsample_pad_forward)->Apply(shortcuts);
BENCHMARK(bench_subsample_pad_backward)->Apply(shortcuts);

// ResNet-20's shortcuts.
const std::vector<Shape> kShapes = {{128, 16, 32, 32}, {1024, 16, 32, 32}, {1024, 32, 16, 16}};

const bench::CudaBench kForward("subsample_pad_forward",
                                bench::kFloatTypes,
                                kShapes,
                                [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                                  const Tensor in = timer.random(shape, dtype);
                                  Tensor out = timer.empty(
                                      subsample_pad_output_shape(shape, 2 * shape[1], 2), dtype);
                                  timer.run(in.nbytes() / 4 + out.nbytes(), [&] {
                                    subsample_pad_forward(
                                        timer.stream(), Shards::single(shape[0]), in, 2, out);
                                  });
                                });

const bench::CudaBench kBackward(
    "subsample_pad_backward",
    bench::kFloatTypes,
    kShapes,
    [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
      const Tensor grad_out =
          timer.random(subsample_pad_output_shape(shape, 2 * shape[1], 2), dtype);
      Tensor grad_in = timer.empty(shape, dtype);
      timer.run(grad_in.nbytes() + grad_out.nbytes() / 2, [&] {
        subsample_pad_backward(timer.stream(), Shards::single(shape[0]), grad_out, 2, grad_in);
      });
    });

}  // namespace
}  // namespace lockstep::kernels
