#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
#include "kernels/dropout.h"
#include "kernels/fill.h"

namespace lockstep::kernels {
namespace {

void bench_dropout(benchmark::State& state) {
  Stream stream(Device::kCpu, usable_cores(), true);
  const Tensor in = Tensor::zeros({state.range(0), state.range(1)}, Dtype::kF32);
  const Tensor images = Tensor::zeros({state.range(0)}, Dtype::kI64);
  Tensor out = Tensor::zeros(in.shape(), Dtype::kF32);
  DropoutParams params;
  for (auto _ : state) {
    dropout_forward(stream, in, images, params, out);
    ++params.layer;
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(2 * in.nbytes()));
}
BENCHMARK(bench_dropout)->Args({64, 50})->Args({64, 4096})->Args({64, 50177})->UseRealTime();

const bench::CudaBench kDropout("dropout_forward",
                                bench::kFloatTypes,
                                {{256, 4096}, {256, 50177}, {256, 256, 56, 56}},
                                [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                                  const Tensor in = timer.random(shape, dtype);
                                  Tensor images = timer.empty({shape[0]}, Dtype::kI64);
                                  fill(timer.stream(), 7, images);
                                  Tensor out = timer.empty(shape, dtype);
                                  timer.run(2 * in.nbytes(), [&] {
                                    dropout_forward(timer.stream(), in, images, {}, out);
                                  });
                                });

}  // namespace
}  // namespace lockstep::kernels
