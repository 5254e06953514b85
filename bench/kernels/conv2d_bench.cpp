#include <benchmark/benchmark.h>

#include "core/thread_pool.h"
#include "kernels/conv2d.h"

namespace lockstep::kernels {
namespace {

// Arguments: images, C, height and width, K, R and S, stride; pad keeps the size at stride 1. One
// shard a thread.
struct Problem {
  Problem(const benchmark::State& state, Dtype dtype)
      : stream(Device::kCpu, threads, true),
        shards(Shards::cut(state.range(0), threads, 1)),
        params{.stride_h = static_cast<int>(state.range(5)),
               .stride_w = static_cast<int>(state.range(5)),
               .pad_h = static_cast<int>(state.range(4) / 2),
               .pad_w = static_cast<int>(state.range(4) / 2)},
        in(zeros({state.range(0), state.range(1), state.range(2), state.range(2)}, dtype)),
        weight(zeros({state.range(3), state.range(1), state.range(4), state.range(4)}, dtype)),
        bias(zeros({state.range(3)})),
        out(zeros(conv2d_output_shape(in.shape(), weight.shape(), params), dtype)),
        weight_leaves(zeros({shards.local(), weight.numel()})),
        bias_leaves(zeros({shards.local(), state.range(3)})) {}

  static Tensor zeros(const Shape& shape, Dtype dtype = Dtype::kF32) {
    return Tensor::zeros(shape, dtype);
  }

  void report(benchmark::State& state) const {
    state.SetItemsProcessed(state.iterations() * shards.images());
    state.counters["FLOP/s"] =
        benchmark::Counter(static_cast<double>(2 * out.numel() * weight.shape().stride0()),
                           benchmark::Counter::kIsIterationInvariantRate);
  }

  int threads = usable_cores();
  Stream stream;
  Shards shards;
  Conv2dParams params;
  Tensor in, weight, bias, out, weight_leaves, bias_leaves;
};

void bench_conv2d_forward(benchmark::State& state, Dtype dtype) {
  Problem p(state, dtype);
  for (auto _ : state)
    conv2d_forward(p.stream, p.shards, {p.in, p.weight, p.bias, p.params, p.out});
  p.report(state);
}

void bench_conv2d_backward_data(benchmark::State& state, Dtype dtype) {
  Problem p(state, dtype);
  for (auto _ : state) conv2d_backward_data(p.stream, p.shards, p.out, p.weight, p.params, p.in);
  p.report(state);
}

void bench_conv2d_backward_weight(benchmark::State& state, Dtype dtype) {
  Problem p(state, dtype);
  for (auto _ : state) {
    conv2d_backward_weight(
        p.stream,
        p.shards,
        {p.in, p.out, p.weight.shape(), p.params, p.weight_leaves, &p.bias_leaves});
  }
  p.report(state);
}

void shapes(benchmark::internal::Benchmark* bench) {
  bench
      ->Args({32, 1, 28, 16, 5, 1})      // ConvNet
      ->Args({32, 16, 14, 32, 5, 1})     // ConvNet
      ->Args({32, 3, 32, 16, 3, 1})      // ResNet-20, CIFAR
      ->Args({32, 64, 8, 64, 3, 1})      // ResNet-20, CIFAR
      ->Args({4, 3, 224, 64, 7, 2})      // ResNet-18 and -50
      ->Args({4, 64, 56, 64, 3, 1})      // ResNet-18 and -50
      ->Args({4, 128, 28, 128, 3, 1})    // ResNet-18
      ->Args({4, 64, 56, 256, 1, 1})     // ResNet-50
      ->Args({4, 256, 14, 256, 3, 1})    // ResNet-50
      ->Args({4, 1024, 14, 2048, 1, 2})  // ResNet-50
      ->UseRealTime();
}
BENCHMARK_CAPTURE(bench_conv2d_forward, f32, Dtype::kF32)->Apply(shapes);
BENCHMARK_CAPTURE(bench_conv2d_forward, bf16, Dtype::kBF16)->Apply(shapes);
BENCHMARK_CAPTURE(bench_conv2d_forward, f16, Dtype::kF16)->Apply(shapes);
BENCHMARK_CAPTURE(bench_conv2d_backward_data, f32, Dtype::kF32)->Apply(shapes);
BENCHMARK_CAPTURE(bench_conv2d_backward_data, bf16, Dtype::kBF16)->Apply(shapes);
BENCHMARK_CAPTURE(bench_conv2d_backward_data, f16, Dtype::kF16)->Apply(shapes);
BENCHMARK_CAPTURE(bench_conv2d_backward_weight, f32, Dtype::kF32)->Apply(shapes);
BENCHMARK_CAPTURE(bench_conv2d_backward_weight, bf16, Dtype::kBF16)->Apply(shapes);
BENCHMARK_CAPTURE(bench_conv2d_backward_weight, f16, Dtype::kF16)->Apply(shapes);

}  // namespace
}  // namespace lockstep::kernels
