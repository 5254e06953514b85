// Times ops on the CPU and on a CUDA device, which share a benchmark's body and have their own
// cases. bench_kernels runs them as "<device>/<name>/<dtype>/<extents>".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "core/function_ref.h"
#include "core/shards.h"
#include "core/stream.h"
#include "core/tensor.h"

namespace lockstep::bench {

using Extents = std::vector<int64_t>;

// Every one of the extents with every dtype.
struct Grid {
  std::vector<Dtype> dtypes;
  std::vector<Extents> extents;
};

// An op without a CPU body has no cases there.
struct Cases {
  Grid cpu = {};
  Grid cuda;
};

// The stream, tensors and clock of a benchmark's body. Values are random: zeros hide mistakes and
// run faster.
class Timer {
 public:
  Timer(benchmark::State& state, Device device, Dtype dtype, const Extents& extents);

  Stream& stream() { return stream_; }
  Dtype dtype() const { return dtype_; }
  // The i-th extent of the case. The benchmark defines what each extent means.
  int64_t operator[](size_t i) const { return extents_[i]; }
  size_t size() const { return extents_.size(); }
  Shape shape() const { return Shape(extents_); }
  // Cuts t[0] images into shards, one per thread.
  Shards shards() const;

  // On the device, uninitialized.
  Tensor empty(const Shape& shape, Dtype dtype) const;
  // Uniform in [low, 1), a float type.
  Tensor random(const Shape& shape, Dtype dtype, float low = -1);
  Tensor random_f32(const Shape& shape) { return random(shape, Dtype::kF32); }
  // t[0] tensors of t[1] elements each, of the case's type.
  std::vector<Tensor> random_tensors();
  // Integers of [0, bound).
  Tensor random_indices(const Shape& shape, int32_t bound);

  // Times `op`, which queues one call that moves `bytes`, as its .cu file counts them. On the CPU,
  // calls run back to back. On CUDA, the time is the median over calls, and no call finds its data
  // in the L2 cache; "of_copy" is the bandwidth as a share of that of a device-to-device copy,
  // measured just before.
  void run(size_t bytes, FunctionRef<void()> op) { run(bytes, 0, op); }
  void run(size_t bytes, int64_t flops, FunctionRef<void()> op);

 private:
  benchmark::State& state_;
  Dtype dtype_;
  const Extents& extents_;
  Stream stream_;
};

using Body = void (*)(Timer&);

// Registers a benchmark. Define these at namespace scope in a <family>_bench.cpp; each folder of
// kernels/ that has ops has one.
class Bench {
 public:
  Bench(std::string_view name, const Cases& cases, Body body);
};

// Registers all benchmarks with Google Benchmark. Returns why those of CUDA are left out, or "". A
// rehearsal runs each once, on very little data; its figures mean nothing.
std::string register_benches(bool rehearsal);

inline const std::vector<Dtype> kF32 = {Dtype::kF32};
inline const std::vector<Dtype> kFloatTypes = {Dtype::kF32, Dtype::kF16, Dtype::kBF16};
// Outputs of ResNet-50's stages at 256 images: from far beyond the L2 cache to nearly within it.
inline const std::vector<Extents> kResnetShapes = {{256, 64, 112, 112},
                                                   {256, 256, 56, 56},
                                                   {256, 512, 28, 28},
                                                   {256, 1024, 14, 14},
                                                   {256, 2048, 7, 7}};

}  // namespace lockstep::bench
