#include <numeric>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/kernels/cuda_bench.h"
#include "core/thread_pool.h"
#include "core/transfer.h"
#include "kernels/crop_flip_normalize.h"

namespace lockstep::kernels {
namespace {

const CropFlipNormalizeParams kParams = {
    .augmentation = {.pad = 4, .flip = true},
    .normalize = {.mean = std::vector(3, 0.5F), .std = std::vector(3, 0.25F)}};

Tensor counting(int64_t images) {
  Tensor indices = Tensor::empty({images}, Dtype::kI64);
  std::iota(indices.data<int64_t>(), indices.data<int64_t>() + images, int64_t{0});
  return indices;
}

void bench_crop_flip_normalize(benchmark::State& state) {
  Stream stream(Device::kCpu, usable_cores(), true);
  const int64_t images = state.range(0);
  const Shards shards = Shards::cut(images, stream.threads(), 1);
  const Tensor in = Tensor::zeros({images, 3, state.range(1), state.range(1)}, Dtype::kU8);
  const Tensor indices = counting(images);
  Tensor out = Tensor::zeros(in.shape(), Dtype::kF32);
  for (auto _ : state) crop_flip_normalize(stream, shards, in, indices, kParams, out);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(in.nbytes() + out.nbytes()));
}
BENCHMARK(bench_crop_flip_normalize)->Args({128, 32})->Args({32, 224})->UseRealTime();

const bench::CudaBench kCuda(
    "crop_flip_normalize",
    bench::kFloatTypes,
    {{128, 3, 32, 32}, {4096, 3, 32, 32}, {256, 3, 224, 224}},
    [](bench::CudaTimer& timer, const Shape& shape, Dtype dtype) {
      const Tensor in = timer.empty(shape, Dtype::kU8);
      const Tensor indices = to_device(timer.stream(), counting(shape[0]));
      Tensor out = timer.empty(shape, dtype);
      timer.run(in.nbytes() + out.nbytes(), [&] {
        crop_flip_normalize(timer.stream(), Shards::single(shape[0]), in, indices, kParams, out);
      });
    });

}  // namespace
}  // namespace lockstep::kernels
