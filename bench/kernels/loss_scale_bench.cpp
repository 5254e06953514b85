#include <vector>

#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
#include "kernels/loss_scale.h"

namespace lockstep::kernels {
namespace {

// Four buckets of `numel` elements each.
void bench_check_finite(benchmark::State& state) {
  const auto dtype = static_cast<Dtype>(state.range(1));
  Stream stream(Device::kCpu, usable_cores(), true);
  Tensor scale = Tensor::empty({kLossScaleStateBytes}, Dtype::kU8);
  loss_scale_init(stream, {}, scale);
  std::vector<Tensor> buckets;
  for (int i = 0; i < 4; ++i) buckets.push_back(Tensor::zeros({state.range(0)}, dtype));
  for (auto _ : state) check_finite(stream, buckets, scale);
  state.SetBytesProcessed(state.iterations() * 4 * static_cast<int64_t>(buckets[0].nbytes()));
  state.SetLabel(std::string(name_of(dtype)));
}
BENCHMARK(bench_check_finite)
    ->ArgsProduct({{6553600}, {int(Dtype::kF32), int(Dtype::kF16), int(Dtype::kBF16)}})
    ->UseRealTime();

const bench::CudaBench kCheckFinite("check_finite",
                                    bench::kFloatTypes,
                                    {{25557032}},
                                    [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                                      const Tensor bucket = timer.random(shape, dtype);
                                      Tensor state =
                                          timer.empty({kLossScaleStateBytes}, Dtype::kU8);
                                      loss_scale_init(timer.stream(), {}, state);
                                      timer.run(bucket.nbytes(), [&] {
                                        check_finite(timer.stream(), {&bucket, 1}, state);
                                      });
                                    });

}  // namespace
}  // namespace lockstep::kernels
