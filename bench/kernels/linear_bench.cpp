#include <benchmark/benchmark.h>

#include "core/thread_pool.h"
#include "kernels/linear.h"

namespace lockstep::kernels {
namespace {

// Arguments: images, features in, features out. One shard a thread.
struct Problem {
  Problem(const benchmark::State& state, Dtype dtype)
      : stream(Device::kCpu, threads, true),
        shards(Shards::cut(state.range(0), threads, 1)),
        in(zeros({state.range(0), state.range(1)}, dtype)),
        weight(zeros({state.range(2), state.range(1)}, dtype)),
        bias(zeros({state.range(2)})),
        out(zeros({state.range(0), state.range(2)}, dtype)),
        weight_leaves(zeros({shards.local(), weight.numel()})),
        bias_leaves(zeros({shards.local(), state.range(2)})) {}

  static Tensor zeros(const Shape& shape, Dtype dtype = Dtype::kF32) {
    return Tensor::zeros(shape, dtype);
  }

  void report(benchmark::State& state) const {
    state.SetItemsProcessed(state.iterations() * shards.images());
    state.counters["FLOP/s"] =
        benchmark::Counter(static_cast<double>(2 * in.shape()[0] * weight.numel()),
                           benchmark::Counter::kIsIterationInvariantRate);
  }

  int threads = usable_cores();
  Stream stream;
  Shards shards;
  Tensor in, weight, bias, out, weight_leaves, bias_leaves;
};

void bench_linear_forward(benchmark::State& state, Dtype dtype) {
  Problem p(state, dtype);
  for (auto _ : state) linear_forward(p.stream, p.shards, p.in, p.weight, p.bias, p.out);
  p.report(state);
}

void bench_linear_backward_data(benchmark::State& state, Dtype dtype) {
  Problem p(state, dtype);
  for (auto _ : state) linear_backward_data(p.stream, p.shards, p.out, p.weight, p.in);
  p.report(state);
}

void bench_linear_backward_weight(benchmark::State& state, Dtype dtype) {
  Problem p(state, dtype);
  for (auto _ : state) {
    linear_backward_weight(p.stream, p.shards, p.in, p.out, p.weight_leaves, p.bias_leaves);
  }
  p.report(state);
}

void shapes(benchmark::internal::Benchmark* bench) {
  bench
      ->Args({32, 1568, 10})    // ConvNet
      ->Args({32, 512, 1000})   // ResNet-18
      ->Args({32, 2048, 1000})  // ResNet-50
      ->UseRealTime();
}
BENCHMARK_CAPTURE(bench_linear_forward, f32, Dtype::kF32)->Apply(shapes);
BENCHMARK_CAPTURE(bench_linear_forward, bf16, Dtype::kBF16)->Apply(shapes);
BENCHMARK_CAPTURE(bench_linear_forward, f16, Dtype::kF16)->Apply(shapes);
BENCHMARK_CAPTURE(bench_linear_backward_data, f32, Dtype::kF32)->Apply(shapes);
BENCHMARK_CAPTURE(bench_linear_backward_data, bf16, Dtype::kBF16)->Apply(shapes);
BENCHMARK_CAPTURE(bench_linear_backward_data, f16, Dtype::kF16)->Apply(shapes);
BENCHMARK_CAPTURE(bench_linear_backward_weight, f32, Dtype::kF32)->Apply(shapes);
BENCHMARK_CAPTURE(bench_linear_backward_weight, bf16, Dtype::kBF16)->Apply(shapes);
BENCHMARK_CAPTURE(bench_linear_backward_weight, f16, Dtype::kF16)->Apply(shapes);

}  // namespace
}  // namespace lockstep::kernels
