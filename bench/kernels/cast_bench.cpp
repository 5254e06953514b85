#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
#include "kernels/cast.h"

namespace lockstep::kernels {
namespace {

void bench_cast(benchmark::State& state, Dtype from, Dtype to) {
  Stream stream(Device::kCpu, usable_cores(), true);
  const Tensor src = Tensor::zeros({state.range(0)}, from);
  Tensor dst = Tensor::zeros({state.range(0)}, to);
  for (auto _ : state) cast(stream, src, dst);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(src.nbytes() + dst.nbytes()));
}
BENCHMARK_CAPTURE(bench_cast, f32_f16, Dtype::kF32, Dtype::kF16)->Arg(401408)->UseRealTime();
BENCHMARK_CAPTURE(bench_cast, f16_f32, Dtype::kF16, Dtype::kF32)->Arg(401408)->UseRealTime();
BENCHMARK_CAPTURE(bench_cast, f32_bf16, Dtype::kF32, Dtype::kBF16)->Arg(401408)->UseRealTime();
BENCHMARK_CAPTURE(bench_cast, bf16_f32, Dtype::kBF16, Dtype::kF32)->Arg(401408)->UseRealTime();

// To f16, and from it to f32: the master weights' way.
const bench::CudaBench kCast("cast",
                             {Dtype::kF32, Dtype::kF16},
                             {{25557032}, {256, 64, 112, 112}},
                             [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                               const bool narrows = dtype == Dtype::kF32;
                               const Tensor src = timer.random(shape, dtype);
                               Tensor dst = timer.empty(shape, narrows ? Dtype::kF16 : Dtype::kF32);
                               timer.run(src.nbytes() + dst.nbytes(),
                                         [&] { cast(timer.stream(), src, dst); });
                             });

}  // namespace
}  // namespace lockstep::kernels
