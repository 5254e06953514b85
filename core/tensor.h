// A dense array: shape, dtype, device and shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/device.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/shape.h"

#pragma GCC visibility push(default)
namespace lockstep {

// Copies share memory, as do views; memory is freed with the last of them. Constness is shallow
// only in copying: a const Tensor& hands out const elements. Layout: core/shape.h. Thread safety:
// as a shared_ptr.
class Tensor {
 public:
  Tensor() noexcept = default;  // no memory, no elements

  // Uninitialized. Errors: EnvironmentError when memory runs out, or in a build without CUDA.
  static Tensor empty(const Shape& shape, Dtype dtype, Device device = Device::kCpu);
  // On CUDA it waits for all streams: not for a step, which has kernels/elementwise/fill.h.
  static Tensor zeros(const Shape& shape, Dtype dtype, Device device = Device::kCpu);
  // Shares `bytes` of memory that `owner` keeps alive; `data` is 64-byte aligned.
  static Tensor wrap(std::shared_ptr<std::byte> data,
                     const Shape& shape,
                     Dtype dtype,
                     Device device);

  bool defined() const { return defined_; }
  const Shape& shape() const { return shape_; }
  Dtype dtype() const { return dtype_; }
  Device device() const { return device_; }
  int64_t numel() const { return shape_.numel(); }
  size_t nbytes() const { return static_cast<size_t>(numel()) * size_of(dtype_); }

  // Errors: DtypeError unless T is the tensor's element type. Null on the dry device.
  template <class T>
  [[gnu::always_inline]] T* data() {
    check_dtype(DtypeOf<T>::kValue);
    return reinterpret_cast<T*>(storage_.get());
  }
  template <class T>
  [[gnu::always_inline]] const T* data() const {
    check_dtype(DtypeOf<T>::kValue);
    return reinterpret_cast<const T*>(storage_.get());
  }
  std::byte* bytes() { return storage_.get(); }
  const std::byte* bytes() const { return storage_.get(); }
  template <class T>
  std::span<T> span() {
    return {data<T>(), static_cast<size_t>(numel())};
  }
  template <class T>
  std::span<const T> span() const {
    return {data<T>(), static_cast<size_t>(numel())};
  }

  // Returns this memory in another shape of as many elements. Between rank 4 and others the order
  // of elements is the order in memory (channels last).
  Tensor view(const Shape& shape) const;
  // Rows [first, first + count) of axis 0, the same memory.
  Tensor slice(int64_t first, int64_t count) const;

 private:
  void check_dtype(Dtype wanted) const {
    if (wanted != dtype_) [[unlikely]]
      throw_wrong_dtype(wanted);
  }
  [[noreturn]] void throw_wrong_dtype(Dtype wanted) const;

  std::shared_ptr<std::byte> storage_;  // points at element 0; owns the whole block
  Shape shape_{0};
  Dtype dtype_ = Dtype::kF32;
  Device device_ = Device::kCpu;
  bool defined_ = false;
};

// Copies of `tensor` on the CPU in row-major order of its named extents: (N,C,H,W) as NCHW,
// (K,C,R,S) as files keep it; and back. Other ranks are copied as they are. Errors: DeviceError off
// the CPU.
Tensor to_row_major(const Tensor& tensor);
Tensor from_row_major(const Tensor& tensor);

// Bytes that the calling thread's tensors on the dry device would take, each in a block of its own.
int64_t dry_bytes_in_use();

class ArenaRecord;

// While it lives, it counts the tensors that the calling thread makes on the dry device, as
// cuda::MemoryPool would place them. Requires: no other one lives on the thread.
class DryRecord {
 public:
  DryRecord();
  DryRecord(const DryRecord&) = delete;
  DryRecord& operator=(const DryRecord&) = delete;
  ~DryRecord();

  int64_t bytes_in_use() const;
  int64_t peak_bytes_in_use() const;
  // A pool of so many bytes in one piece has room for each tensor beside those that live.
  int64_t pool_bytes() const;

 private:
  std::shared_ptr<ArenaRecord> record_;
};

}  // namespace lockstep
#pragma GCC visibility pop
