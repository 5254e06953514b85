#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
#include "kernels/depthwise_conv2d.h"

namespace lockstep::kernels {
namespace {

// Arguments: images, C, height and width, R and S, stride; pad keeps the size at stride 1. One
// shard a thread.
struct Problem {
  Problem(const benchmark::State& state, Dtype dtype)
      : shards(Shards::cut(state.range(0), stream.threads(), 1)),
        params{.stride_h = static_cast<int>(state.range(4)),
               .stride_w = static_cast<int>(state.range(4)),
               .pad_h = static_cast<int>(state.range(3) / 2),
               .pad_w = static_cast<int>(state.range(3) / 2)},
        in(zeros({state.range(0), state.range(1), state.range(2), state.range(2)}, dtype)),
        weight(zeros({state.range(1), 1, state.range(3), state.range(3)}, dtype)),
        out(zeros(depthwise_conv2d_output_shape(in.shape(), weight.shape(), params), dtype)),
        leaves(zeros({shards.local(), weight.numel()}, Dtype::kF32)) {}

  static Tensor zeros(const Shape& shape, Dtype dtype) { return Tensor::zeros(shape, dtype); }

  void report(benchmark::State& state) const {
    state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(in.nbytes() + out.nbytes()));
  }

  Stream stream{Device::kCpu, usable_cores(), true};
  Shards shards;
  Conv2dParams params;
  Tensor in, weight, out, leaves;
};

void bench_depthwise_conv2d_forward(benchmark::State& state, Dtype dtype) {
  Problem p(state, dtype);
  for (auto _ : state) {
    depthwise_conv2d_forward(p.stream, p.shards, p.in, p.weight, p.params, p.out);
  }
  p.report(state);
}

void bench_depthwise_conv2d_backward_data(benchmark::State& state, Dtype dtype) {
  Problem p(state, dtype);
  for (auto _ : state) {
    depthwise_conv2d_backward_data(p.stream, p.shards, p.out, p.weight, p.params, p.in);
  }
  p.report(state);
}

void bench_depthwise_conv2d_backward_weight(benchmark::State& state, Dtype dtype) {
  Problem p(state, dtype);
  for (auto _ : state) {
    depthwise_conv2d_backward_weight(
        p.stream, p.shards, {p.in, p.out, p.weight.shape(), p.params, p.leaves});
  }
  p.report(state);
}

void shapes(benchmark::internal::Benchmark* bench) {  // GhostNet's
  bench->Args({8, 16, 112, 3, 1})->Args({8, 72, 56, 5, 2})->Args({8, 480, 14, 3, 1})->UseRealTime();
}
BENCHMARK_CAPTURE(bench_depthwise_conv2d_forward, f32, Dtype::kF32)->Apply(shapes);
BENCHMARK_CAPTURE(bench_depthwise_conv2d_forward, bf16, Dtype::kBF16)->Apply(shapes);
BENCHMARK_CAPTURE(bench_depthwise_conv2d_forward, f16, Dtype::kF16)->Apply(shapes);
BENCHMARK_CAPTURE(bench_depthwise_conv2d_backward_data, f32, Dtype::kF32)->Apply(shapes);
BENCHMARK_CAPTURE(bench_depthwise_conv2d_backward_data, bf16, Dtype::kBF16)->Apply(shapes);
BENCHMARK_CAPTURE(bench_depthwise_conv2d_backward_data, f16, Dtype::kF16)->Apply(shapes);
BENCHMARK_CAPTURE(bench_depthwise_conv2d_backward_weight, f32, Dtype::kF32)->Apply(shapes);
BENCHMARK_CAPTURE(bench_depthwise_conv2d_backward_weight, bf16, Dtype::kBF16)->Apply(shapes);
BENCHMARK_CAPTURE(bench_depthwise_conv2d_backward_weight, f16, Dtype::kF16)->Apply(shapes);

// 3x3 at stride 1, as GhostNet has them.
const std::vector<Shape> kImages = {{256, 16, 112, 112}, {256, 72, 56, 56}, {256, 480, 14, 14}};
constexpr Conv2dParams kPadded{.pad_h = 1, .pad_w = 1};

const bench::CudaBench kForward("depthwise_conv2d_forward_3x3",
                                bench::kFloatTypes,
                                kImages,
                                [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                                  const Tensor in = timer.random(shape, dtype);
                                  const Tensor weight = timer.random({shape[1], 1, 3, 3}, dtype);
                                  Tensor out = timer.empty(shape, dtype);
                                  const Shards shards = Shards::single(shape[0]);
                                  timer.run(in.nbytes() + out.nbytes(), [&] {
                                    depthwise_conv2d_forward(
                                        timer.stream(), shards, in, weight, kPadded, out);
                                  });
                                });
const bench::CudaBench kBackwardData(
    "depthwise_conv2d_backward_data_3x3",
    bench::kFloatTypes,
    kImages,
    [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
      const Tensor grad_out = timer.random(shape, dtype);
      const Tensor weight = timer.random({shape[1], 1, 3, 3}, dtype);
      Tensor grad_in = timer.empty(shape, dtype);
      const Shards shards = Shards::single(shape[0]);
      timer.run(grad_out.nbytes() + grad_in.nbytes(), [&] {
        depthwise_conv2d_backward_data(timer.stream(), shards, grad_out, weight, kPadded, grad_in);
      });
    });
const bench::CudaBench kBackwardWeight(
    "depthwise_conv2d_backward_weight_3x3",
    bench::kFloatTypes,
    kImages,
    [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
      const Tensor in = timer.random(shape, dtype);
      const Tensor grad_out = timer.random(shape, dtype);
      const Shape filters{shape[1], 1, 3, 3};
      Tensor leaf = timer.empty({1, filters.numel()}, Dtype::kF32);
      const Shards shards = Shards::single(shape[0]);
      timer.run(in.nbytes() + grad_out.nbytes(), [&] {
        depthwise_conv2d_backward_weight(
            timer.stream(), shards, {in, grad_out, filters, kPadded, leaf});
      });
    });

}  // namespace
}  // namespace lockstep::kernels
