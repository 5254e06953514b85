#include "bench/kernels/cuda_bench.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/mt19937.h"
#include "core/transfer.h"
#include "kernels/cast.h"

#if defined(LOCKSTEP_CUDA)
#include <cuda_runtime_api.h>

#include "core/cuda/device.h"
#include "core/cuda/error.h"
#endif

namespace lockstep::bench {
namespace {

struct Case {
  std::string name;
  Shape shape;
  Dtype dtype;
  CudaBody body;
};

std::string extents_text(const Shape& shape) {
  std::string text;
  for (int axis = 0; axis < shape.rank(); ++axis)
    text += fmt::format("{}{}", axis == 0 ? "" : "x", shape[axis]);
  return text;
}

std::vector<Case>& cases() {
  static std::vector<Case> cases;
  return cases;
}

}  // namespace

CudaBench::CudaBench(std::string_view name,
                     const std::vector<Dtype>& dtypes,
                     const std::vector<Shape>& shapes,
                     CudaBody body) {
  for (const Dtype dtype : dtypes) {
    for (const Shape& shape : shapes) {
      cases().push_back({fmt::format("cuda/{}/{}/{}", name, name_of(dtype), extents_text(shape)),
                         shape,
                         dtype,
                         body});
    }
  }
}

#if defined(LOCKSTEP_CUDA)
namespace {

using cuda::check;

struct Effort {
  int calls = 30;
  size_t copy_bytes = size_t{512} << 20;
  size_t scratch_bytes = size_t{256} << 20;  // more than any L2 cache holds
};
Effort effort;

constexpr int64_t kPatternLength = 1'048'573;  // a prime: no row is like its neighbor

class CudaEvent {
 public:
  CudaEvent() { check(cudaEventCreate(&event_), "event"); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  ~CudaEvent() { cudaEventDestroy(event_); }
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_{};
};

double median_seconds(Stream& stream, FunctionRef<void()> op) {
  static Tensor& scratch = *new Tensor(  // no static object may outlive the CUDA runtime
      Tensor::empty({static_cast<int64_t>(effort.scratch_bytes)}, Dtype::kU8, Device::kCuda));
  const CudaEvent begin;
  const CudaEvent end;
  std::vector<float> milliseconds;
  op();  // loads the kernel
  for (int i = 0; i < effort.calls; ++i) {
    check(cudaMemsetAsync(scratch.data<uint8_t>(), i, effort.scratch_bytes, stream.cuda()),
          "memset");
    check(cudaEventRecord(begin.get(), stream.cuda()), "event");
    op();
    check(cudaEventRecord(end.get(), stream.cuda()), "event");
    stream.synchronize();
    check(cudaEventElapsedTime(&milliseconds.emplace_back(), begin.get(), end.get()), "event");
  }
  const auto middle = milliseconds.begin() + effort.calls / 2;
  std::ranges::nth_element(milliseconds, middle);
  return static_cast<double>(*middle) / 1000;
}

// One length of `pattern` after the other until the tensor is full, on the device.
Tensor repeated(Stream& stream, const Tensor& pattern, const Shape& shape) {
  Tensor tensor = Tensor::empty(shape, pattern.dtype(), Device::kCuda);
  Tensor flat = tensor.view({tensor.numel()});
  for (int64_t first = 0; first < flat.numel(); first += pattern.numel()) {
    const int64_t count = std::min(pattern.numel(), flat.numel() - first);
    Tensor part = flat.slice(first, count);
    transfer(stream, pattern.slice(0, count), part);
  }
  stream.synchronize();
  return tensor;
}

double copy_bytes_per_second(CudaTimer& timer) {
  const Tensor from =
      timer.random({static_cast<int64_t>(effort.copy_bytes / sizeof(float))}, Dtype::kF32);
  Tensor to = timer.empty(from.shape(), Dtype::kF32);
  const double seconds =
      median_seconds(timer.stream(), [&] { transfer(timer.stream(), from, to); });
  return 2 * static_cast<double>(effort.copy_bytes) / seconds;
}

Shape one_image(const Shape& shape) {
  std::vector<int64_t> extents;
  for (int axis = 0; axis < shape.rank(); ++axis)
    extents.push_back(std::min<int64_t>(shape[axis], 5000));
  if (shape.rank() > 1) extents[0] = 1;
  return Shape(extents);
}

}  // namespace

Tensor CudaTimer::random(const Shape& shape, Dtype dtype, float low) {
  Tensor pattern = Tensor::empty({std::min(shape.numel(), kPatternLength)}, Dtype::kF32);
  Mt19937(1).uniform(pattern.span<float>(), low, 1);
  if (dtype == Dtype::kF32) return repeated(stream_, pattern, shape);
  Stream cpu;
  Tensor rounded = Tensor::empty(pattern.shape(), dtype);
  kernels::cast(cpu, pattern, rounded);
  return repeated(stream_, rounded, shape);
}

Tensor CudaTimer::random_indices(const Shape& shape, int32_t bound) {
  Tensor pattern = Tensor::empty({kPatternLength}, Dtype::kI32);
  std::vector<float> values(static_cast<size_t>(kPatternLength));
  Mt19937(1).uniform(values, 0, static_cast<float>(bound));
  std::ranges::transform(values, pattern.span<int32_t>().begin(), [](float value) {
    return static_cast<int32_t>(value);
  });
  return repeated(stream_, pattern, shape);
}

void CudaTimer::run(size_t bytes, FunctionRef<void()> op) {
  const double copy_rate = copy_bytes_per_second(*this);
  const double seconds = median_seconds(stream_, op);
  for (auto _ : state_) state_.SetIterationTime(seconds);
  const double rate = static_cast<double>(bytes) / seconds;
  state_.counters["GB/s"] = rate / 1e9;
  state_.counters["of_copy"] = rate / copy_rate;
}

std::string register_cuda_benches(bool rehearsal) {
  try {
    cuda::ensure_device();
  } catch (const EnvironmentError& error) {
    return fmt::format("{}: {}", error.what(), error.why());
  }
  if (rehearsal) effort = {.calls = 1, .copy_bytes = size_t{1} << 20, .scratch_bytes = 1};
  for (Case& each : cases()) {
    if (rehearsal) each.shape = one_image(each.shape);
    const auto body = [&each](benchmark::State& state) {
      CudaTimer timer(state);
      each.body(timer, each.shape, each.dtype);
    };
    benchmark::RegisterBenchmark(each.name.c_str(), body)->Iterations(1)->UseManualTime();
  }
  return {};
}
#else  // never called: no case is registered
Tensor CudaTimer::random(const Shape& /*shape*/, Dtype /*dtype*/, float /*low*/) {
  return {};
}

Tensor CudaTimer::random_indices(const Shape& /*shape*/, int32_t /*bound*/) {
  return {};
}

void CudaTimer::run(size_t /*bytes*/, FunctionRef<void()> /*op*/) {}

std::string register_cuda_benches(bool /*rehearsal*/) {
  return "this build is without CUDA";
}
#endif

}  // namespace lockstep::bench
