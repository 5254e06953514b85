// Kernels with planted bugs, which test the emulator itself. Each .cu here is one type of kernel;
// its template parameter selects the bug. mutants.md says which flavor must catch it.
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "core/cuda/error.h"
#include "core/cuda/launch.h"

namespace lockstep::emulation::mutants {

// A kernel with one bug, or without any.
struct Mutant {
  std::string_view kernel, bug;
  bool (*gives_right_result)();
};

// All mutants of the program, in the order of their declaration within a kernel.
std::vector<Mutant>& all_mutants();

// The mutants of one kernel; declare it at namespace scope. The first bug is "none".
struct Family {
  struct Bug {
    std::string_view name;
    bool (*gives_right_result)();
  };
  Family(std::string_view kernel, std::initializer_list<Bug> bugs) {
    for (const Bug& bug : bugs) all_mutants().push_back({kernel, bug.name, bug.gives_right_result});
  }
};

inline Stream& stream() {
  static Stream stream(Device::kCuda);
  return stream;
}

// Elements on the device. Each array is a separate allocation.
template <class T>
class DeviceArray {
 public:
  // Memory that was never written.
  explicit DeviceArray(size_t count) : count_(count) {
    cuda::check(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T)), "mutant");
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    cuda::check(cudaMemcpyAsync(data_,
                                values.data(),
                                values.size() * sizeof(T),
                                cudaMemcpyHostToDevice,
                                stream().cuda()),
                "mutant");
    stream().synchronize();
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() { return data_; }
  void free() {
    stream().synchronize();
    cudaFree(std::exchange(data_, nullptr));
  }
  std::vector<T> download() {
    std::vector<T> values(count_);
    cuda::check(
        cudaMemcpyAsync(
            values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost, stream().cuda()),
        "mutant");
    stream().synchronize();
    return values;
  }

 private:
  size_t count_;
  T* data_ = nullptr;
};

// Small whole numbers, whose sums are exact in any order of addition.
inline std::vector<float> small_numbers(size_t count, unsigned seed) {
  std::vector<float> values(count);
  for (float& value : values) {
    seed = seed * 1664525U + 1013904223U;
    value = static_cast<float>(static_cast<int>(seed >> 28U)) - 7;
  }
  return values;
}

}  // namespace lockstep::emulation::mutants
