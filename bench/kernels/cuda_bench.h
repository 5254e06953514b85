// Ops timed on a CUDA device: what bench_kernels runs beside the CPU's cases where there is one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "core/function_ref.h"
#include "core/stream.h"
#include "core/tensor.h"

namespace lockstep::bench {

// A case's stream, tensors and timer. Values are random: zeros hide mistakes and run faster.
class CudaTimer {
 public:
  explicit CudaTimer(benchmark::State& state) : state_(state) {}

  Stream& stream() { return stream_; }
  Tensor empty(const Shape& shape, Dtype dtype) {
    return Tensor::empty(shape, dtype, Device::kCuda);
  }
  // Uniform in [low, 1), a float type.
  Tensor random(const Shape& shape, Dtype dtype, float low = -1);
  // Integers of [0, bound).
  Tensor random_indices(const Shape& shape, int32_t bound);

  // Reports the median time of `op`, which queues one call that moves `bytes`, as its .cu counts
  // them: each call finds none of its data in the L2 cache. Rates: GB/s, and share of that of a
  // copy from device to device, measured just before.
  void run(size_t bytes, FunctionRef<void()> op);

 private:
  benchmark::State& state_;
  Stream stream_{Device::kCuda};
};

using CudaBody = void (*)(CudaTimer&, const Shape&, Dtype);

// At namespace scope of a <op>_bench.cpp: "cuda/<name>/<dtype>/<shape>" for each of the two.
class CudaBench {
 public:
  CudaBench(std::string_view name,
            const std::vector<Dtype>& dtypes,
            const std::vector<Shape>& shapes,
            CudaBody body);
};

// Makes all of them known to Google Benchmark; or does nothing and returns why there is no device.
// A rehearsal runs each once, on one image, and its figures mean nothing.
std::string register_cuda_benches(bool rehearsal);

inline const std::vector<Dtype> kFloatTypes = {Dtype::kF32, Dtype::kF16, Dtype::kBF16};
// Outputs of ResNet-50's stages at 256 images: from far beyond the L2 cache to nearly within it.
inline const std::vector<Shape> kResnetShapes = {{256, 64, 112, 112},
                                                 {256, 256, 56, 56},
                                                 {256, 512, 28, 28},
                                                 {256, 1024, 14, 14},
                                                 {256, 2048, 7, 7}};

}  // namespace lockstep::bench
