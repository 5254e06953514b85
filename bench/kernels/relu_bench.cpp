#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
#include "kernels/relu.h"

namespace lockstep::kernels {
namespace {

void bench_relu_forward(benchmark::State& state) {
  Stream stream(Device::kCpu, usable_cores(), true);
  const Tensor in = Tensor::zeros({state.range(0)}, Dtype::kF32);
  Tensor out = Tensor::zeros({state.range(0)}, Dtype::kF32);
  for (auto _ : state) relu_forward(stream, in, out);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(2 * in.nbytes()));
}
BENCHMARK(bench_relu_forward)->Arg(4096)->Arg(401408)->Arg(25690112)->UseRealTime();

void bench_relu_backward(benchmark::State& state) {
  const auto dtype = static_cast<Dtype>(state.range(1));
  Stream stream(Device::kCpu, usable_cores(), true);
  const Tensor out = Tensor::zeros({state.range(0)}, dtype);
  const Tensor grad_out = Tensor::zeros({state.range(0)}, dtype);
  Tensor grad_in = Tensor::zeros({state.range(0)}, dtype);
  for (auto _ : state) relu_backward(stream, out, grad_out, grad_in);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(3 * out.nbytes()));
  state.SetLabel(std::string(name_of(dtype)));
}
BENCHMARK(bench_relu_backward)
    ->ArgsProduct({{4096, 401408}, {int(Dtype::kF32), int(Dtype::kF16), int(Dtype::kBF16)}})
    ->UseRealTime();

const bench::CudaBench kForward("relu_forward",
                                bench::kFloatTypes,
                                bench::kResnetShapes,
                                [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                                  const Tensor in = timer.random(shape, dtype);
                                  Tensor out = timer.empty(shape, dtype);
                                  timer.run(2 * in.nbytes(),
                                            [&] { relu_forward(timer.stream(), in, out); });
                                });

const bench::CudaBench kBackward("relu_backward",
                                 bench::kFloatTypes,
                                 bench::kResnetShapes,
                                 [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
                                   const Tensor out = timer.random(shape, dtype);
                                   const Tensor grad_out = timer.random(shape, dtype);
                                   Tensor grad_in = timer.empty(shape, dtype);
                                   timer.run(3 * out.nbytes(), [&] {
                                     relu_backward(timer.stream(), out, grad_out, grad_in);
                                   });
                                 });

}  // namespace
}  // namespace lockstep::kernels
