#include <vector>

#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
#include "kernels/tensor_norms.h"

namespace lockstep::kernels {
namespace {

// `range(0)` tensors of `range(1)` elements each.
void bench_tensor_norms(benchmark::State& state) {
  const auto dtype = static_cast<Dtype>(state.range(2));
  Stream stream(Device::kCpu, usable_cores(), true);
  std::vector<Tensor> tensors;
  for (int64_t i = 0; i < state.range(0); ++i)
    tensors.push_back(Tensor::zeros({state.range(1)}, dtype));
  Tensor norms = Tensor::zeros({state.range(0) + 1}, Dtype::kF32);
  for (auto _ : state) tensor_norms(stream, tensors, norms);
  state.SetBytesProcessed(state.iterations() * state.range(0) *
                          static_cast<int64_t>(tensors[0].nbytes()));
  state.SetLabel(std::string(name_of(dtype)));
}
BENCHMARK(bench_tensor_norms)
    ->Args({10, 2903, int(Dtype::kF32)})
    ->Args({62, 188575, int(Dtype::kF32)})
    ->Args({62, 188575, int(Dtype::kF16)})
    ->UseRealTime();

const bench::CudaBench kNorms("tensor_norms",
                              bench::kFloatTypes,
                              {{25557032}},
                              [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                                const Tensor tensor = timer.random(shape, dtype);
                                Tensor norms = timer.empty({2}, Dtype::kF32);
                                timer.run(tensor.nbytes(), [&] {
                                  tensor_norms(timer.stream(), {&tensor, 1}, norms);
                                });
                              });

}  // namespace
}  // namespace lockstep::kernels
