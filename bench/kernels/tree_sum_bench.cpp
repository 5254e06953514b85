#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
#include "kernels/tree_sum.h"

namespace lockstep::kernels {
namespace {

void bench_tree_sum(benchmark::State& state) {
  Stream stream(Device::kCpu, usable_cores(), true);
  const Tensor leaves = Tensor::zeros({state.range(0), state.range(1)}, Dtype::kF32);
  Tensor out = Tensor::zeros({state.range(1)}, Dtype::kF32);
  for (auto _ : state) tree_sum(stream, leaves, out);
  state.SetBytesProcessed(state.iterations() *
                          static_cast<int64_t>(leaves.nbytes() + out.nbytes()));
}
BENCHMARK(bench_tree_sum)
    ->ArgNames({"leaves", "n"})
    ->ArgsProduct({{1, 2, 8, 16, 40}, {64, 28938, 1048576}})
    ->UseRealTime();

// Eight shards' gradients of ResNet-50, and one bucket of them.
const bench::CudaBench kCuda("tree_sum",
                             {Dtype::kF32},
                             {{8, 25'557'032}, {8, 2'097'152}},
                             [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                               const Tensor leaves = timer.random(shape, dtype);
                               Tensor out = timer.empty({shape[1]}, dtype);
                               timer.run(leaves.nbytes() + out.nbytes(),
                                         [&] { tree_sum(timer.stream(), leaves, out); });
                             });

}  // namespace
}  // namespace lockstep::kernels
