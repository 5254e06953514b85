#include <vector>

#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "kernels/peer_sum.h"

namespace lockstep::kernels {
namespace {

// In place over all ranks' copies. Bytes: each copy read and written once.
void bench_peer_sum(benchmark::State& state, Dtype dtype) {
  Stream stream;  // a rank sums its slice on one thread
  std::vector<Tensor> leaves;
  for (int64_t w = 0; w < state.range(0); ++w) {
    leaves.push_back(Tensor::zeros({state.range(1) / static_cast<int64_t>(size_of(dtype))}, dtype));
  }
  for (auto _ : state) peer_sum(stream, leaves, leaves);
  state.SetBytesProcessed(state.iterations() * 2 * state.range(0) * state.range(1));
}
BENCHMARK_CAPTURE(bench_peer_sum, f32, Dtype::kF32)
    ->ArgNames({"ranks", "bytes"})
    ->ArgsProduct({{2, 4, 8}, {4096, 1 << 20, 25 << 20}})
    ->UseRealTime();
BENCHMARK_CAPTURE(bench_peer_sum, f16, Dtype::kF16)
    ->ArgNames({"ranks", "bytes"})
    ->ArgsProduct({{2, 8}, {4096, 25 << 20}})
    ->UseRealTime();
BENCHMARK_CAPTURE(bench_peer_sum, bf16, Dtype::kBF16)
    ->ArgNames({"ranks", "bytes"})
    ->ArgsProduct({{2, 8}, {4096, 25 << 20}})
    ->UseRealTime();

// One rank's slice of eight, with all copies on one device: the links' part is not in it.
const bench::CudaBench kCuda("peer_sum",
                             bench::kFloatTypes,
                             {{8, 3'194'629}},
                             [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                               std::vector<Tensor> leaves;
                               for (int64_t w = 0; w < shape[0]; ++w)
                                 leaves.push_back(timer.random({shape[1]}, dtype));
                               timer.run(2 * leaves.size() * leaves[0].nbytes(),
                                         [&] { peer_sum(timer.stream(), leaves, leaves); });
                             });

}  // namespace
}  // namespace lockstep::kernels
