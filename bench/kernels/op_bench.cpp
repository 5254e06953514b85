#include "bench/kernels/op_bench.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/cuda/device.h"
#include "core/mt19937.h"
#include "core/thread_pool.h"
#include "core/transfer.h"
#include "kernels/elementwise/copy.h"

#if defined(LOCKSTEP_CUDA)
#include <cuda_runtime_api.h>

#include "core/cuda/error.h"
#endif

namespace lockstep::bench {
namespace {

struct Definition {
  std::string name;
  Cases cases;
  Body body;
};

std::vector<Definition>& definitions() {
  static std::vector<Definition> all;
  return all;
}

// On a CUDA device.
struct Effort {
  int calls = 30;
  size_t copy_bytes = size_t{512} << 20;
  size_t scratch_bytes = size_t{256} << 20;  // more than any L2 cache holds
};
Effort effort;

constexpr int64_t kPatternLength = 1'048'573;  // a prime: no row is like its neighbor

#if defined(LOCKSTEP_CUDA)
using cuda::check;

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
#else
double median_seconds(Stream& /*stream*/, FunctionRef<void()> /*op*/) {
  return 0;  // never called: no case is registered
}
#endif

// Repeats `pattern` until the tensor is full.
Tensor repeated(Stream& stream, const Tensor& pattern, const Shape& shape) {
  Tensor tensor = Tensor::empty(shape, pattern.dtype(), stream.device());
  Tensor flat = tensor.view({tensor.numel()});
  const Tensor first = flat.slice(0, std::min(pattern.numel(), flat.numel()));
  for (int64_t begin = 0; begin < flat.numel(); begin += pattern.numel()) {
    const int64_t count = std::min(pattern.numel(), flat.numel() - begin);
    Tensor part = flat.slice(begin, count);
    transfer(stream, (begin == 0 ? pattern : first).slice(0, count), part);
  }
  stream.synchronize();
  return tensor;
}

double copy_bytes_per_second(Timer& timer) {
  const Tensor from = timer.random_f32({static_cast<int64_t>(effort.copy_bytes / sizeof(float))});
  Tensor to = timer.empty(from.shape(), Dtype::kF32);
  const double seconds =
      median_seconds(timer.stream(), [&] { transfer(timer.stream(), from, to); });
  return 2 * static_cast<double>(effort.copy_bytes) / seconds;
}

// Shrinks the extents for a rehearsal, to two images or tensors at most.
Extents rehearsed(Extents extents) {
  const int64_t max_extent = extents.size() > 2 ? 32 : 5000;
  for (int64_t& extent : extents) extent = std::min(extent, max_extent);
  if (extents.size() > 1) extents[0] = std::min<int64_t>(extents[0], 2);
  return extents;
}

void register_cases(const Definition& bench, Device device, bool rehearsal) {
  const Grid& grid = device == Device::kCpu ? bench.cases.cpu : bench.cases.cuda;
  for (const Dtype dtype : grid.dtypes) {
    for (const Extents& full : grid.extents) {
      const std::string name = fmt::format(
          "{}/{}/{}/{}", name_of(device), bench.name, name_of(dtype), fmt::join(full, "x"));
      const auto body = [=, body = bench.body, extents = rehearsal ? rehearsed(full) : full](
                            benchmark::State& state) {
        try {
          Timer timer(state, device, dtype, extents);
          body(timer);
        } catch (const EnvironmentError& error) {
          state.SkipWithError(error.what());
        }
      };
      auto* made = benchmark::RegisterBenchmark(name.c_str(), body);
      if (rehearsal || device == Device::kCuda) made->Iterations(1);
      device == Device::kCuda ? made->UseManualTime() : made->UseRealTime();
    }
  }
}

}  // namespace

Timer::Timer(benchmark::State& state, Device device, Dtype dtype, const Extents& extents)
    : state_(state),
      dtype_(dtype),
      extents_(extents),
      stream_(device, device == Device::kCpu ? usable_cores() : 1, true) {}

Shards Timer::shards() const {
  return Shards::cut(extents_[0], stream_.threads(), 1);
}

Tensor Timer::empty(const Shape& shape, Dtype dtype) const {
  return Tensor::empty(shape, dtype, stream_.device());
}

Tensor Timer::random(const Shape& shape, Dtype dtype, float low) {
  Tensor pattern = Tensor::empty({std::min(shape.numel(), kPatternLength)}, Dtype::kF32);
  Mt19937(1).uniform(pattern.span<float>(), low, 1);
  if (dtype == Dtype::kF32) return repeated(stream_, pattern, shape);
  Stream cpu;
  Tensor rounded = Tensor::empty(pattern.shape(), dtype);
  kernels::cast(cpu, pattern, rounded);
  return repeated(stream_, rounded, shape);
}

std::vector<Tensor> Timer::random_tensors() {
  std::vector<Tensor> tensors;
  for (int64_t i = 0; i < extents_[0]; ++i) tensors.push_back(random({extents_[1]}, dtype_));
  return tensors;
}

Tensor Timer::random_indices(const Shape& shape, int32_t bound) {
  Tensor pattern = Tensor::empty({kPatternLength}, Dtype::kI32);
  std::vector<float> values(static_cast<size_t>(kPatternLength));
  Mt19937(1).uniform(values, 0, static_cast<float>(bound));
  std::ranges::transform(values, pattern.span<int32_t>().begin(), [](float value) {
    return static_cast<int32_t>(value);
  });
  return repeated(stream_, pattern, shape);
}

void Timer::run(size_t bytes, int64_t flops, FunctionRef<void()> op) {
  if (stream_.device() == Device::kCuda) {
    const double copy_rate = copy_bytes_per_second(*this);
    const double seconds = median_seconds(stream_, op);
    for (auto _ : state_) state_.SetIterationTime(seconds);
    state_.counters["of_copy"] = static_cast<double>(bytes) / seconds / copy_rate;
  } else {
    op();  // makes plans, and touches the memory
    for (auto _ : state_) op();
  }
  state_.SetBytesProcessed(state_.iterations() * static_cast<int64_t>(bytes));
  if (flops == 0) return;
  state_.counters["FLOP/s"] =
      benchmark::Counter(static_cast<double>(flops), benchmark::Counter::kIsIterationInvariantRate);
}

Bench::Bench(std::string_view name, const Cases& cases, Body body) {
  definitions().push_back({std::string(name), cases, body});
}

std::string register_benches(bool rehearsal) {
  std::string why;
  try {
    cuda::ensure_device();
  } catch (const EnvironmentError& error) {
    why = fmt::format("{}: {}", error.what(), error.why());
  }
  if (rehearsal) effort = {.calls = 1, .copy_bytes = size_t{1} << 20, .scratch_bytes = 1};
  for (const Definition& bench : definitions()) {
    register_cases(bench, Device::kCpu, rehearsal);
    if (why.empty()) register_cases(bench, Device::kCuda, rehearsal);
  }
  return why;
}

}  // namespace lockstep::bench
