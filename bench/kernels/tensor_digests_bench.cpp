#include <vector>

#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
#include "kernels/tensor_digests.h"

namespace lockstep::kernels {
namespace {

// `range(0)` tensors of `range(1)` elements each.
void bench_tensor_digests(benchmark::State& state) {
  Stream stream(Device::kCpu, usable_cores(), true);
  std::vector<Tensor> tensors;
  for (int64_t i = 0; i < state.range(0); ++i)
    tensors.push_back(Tensor::zeros({state.range(1)}, Dtype::kF32));
  Tensor digests = Tensor::zeros({state.range(0)}, Dtype::kI64);
  for (auto _ : state) tensor_digests(stream, tensors, digests);
  state.SetBytesProcessed(state.iterations() * state.range(0) * state.range(1) * 4);
}
BENCHMARK(bench_tensor_digests)->Args({10, 2903})->Args({62, 188575})->UseRealTime();

const bench::CudaBench kDigests("tensor_digests",
                                {Dtype::kF32},
                                {{25557032}},
                                [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                                  const Tensor tensor = timer.random(shape, dtype);
                                  Tensor digests = timer.empty({1}, Dtype::kI64);
                                  timer.run(tensor.nbytes(), [&] {
                                    tensor_digests(timer.stream(), {&tensor, 1}, digests);
                                  });
                                });

}  // namespace
}  // namespace lockstep::kernels
