#include <benchmark/benchmark.h>

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

}  // namespace
}  // namespace lockstep::kernels
