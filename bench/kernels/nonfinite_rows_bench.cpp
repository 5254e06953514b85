#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
#include "kernels/nonfinite_rows.h"

namespace lockstep::kernels {
namespace {

void bench_nonfinite_rows(benchmark::State& state) {
  const auto dtype = static_cast<Dtype>(state.range(1));
  Stream stream(Device::kCpu, usable_cores(), true);
  const Tensor in = Tensor::zeros({32, state.range(0)}, dtype);
  Tensor counts = Tensor::zeros({32}, Dtype::kI32);
  for (auto _ : state) nonfinite_rows(stream, in, counts);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(in.nbytes()));
  state.SetLabel(std::string(name_of(dtype)));
}
BENCHMARK(bench_nonfinite_rows)
    ->ArgsProduct({{12544, 802816}, {int(Dtype::kF32), int(Dtype::kF16), int(Dtype::kBF16)}})
    ->UseRealTime();

const bench::CudaBench kRows("nonfinite_rows",
                             bench::kFloatTypes,
                             bench::kResnetShapes,
                             [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                               const Tensor in = timer.random(shape, dtype);
                               Tensor counts = timer.empty({shape[0]}, Dtype::kI32);
                               timer.run(in.nbytes(),
                                         [&] { nonfinite_rows(timer.stream(), in, counts); });
                             });

}  // namespace
}  // namespace lockstep::kernels
