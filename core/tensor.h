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

// Copies and views share memory, which is freed with the last of them. A const Tensor& gives access
// to const elements; a copy of it does not. Layout: core/shape.h. Thread safety: as a shared_ptr.
class Tensor {
 public:
  Tensor() noexcept = default;  // no memory, no elements

  // Uninitialized. Errors: ShapeError for more bytes than 64 bits count; EnvironmentError when
  // memory runs out, or in a build without CUDA.
  static Tensor empty(const Shape& shape, Dtype dtype, Device device = Device::kCpu);
  // On CUDA it waits for all streams, so a training step uses kernels/elementwise/fill.h instead.
  static Tensor zeros(const Shape& shape, Dtype dtype, Device device = Device::kCpu);
  // A tensor in memory that `data` owns. Requires: `data` is 64-byte aligned and large enough.
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

  // A view of the same memory in another shape with as many elements. From rank 4 to another rank,
  // or back, the elements keep their order in memory (channels last). Errors: ShapeError for
  // another number of elements.
  Tensor view(const Shape& shape) const;
  // Rows [first, first + count) of axis 0, in the same memory. Errors: ShapeError outside
  // [0, extent of axis 0].
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

// Copies a tensor on the CPU from channels-last order to row-major order, and back: (N,C,H,W) is
// then stored as NCHW, (K,C,R,S) as in files. Tensors of other ranks are copied unchanged. Errors:
// DeviceError off the CPU.
Tensor to_row_major(const Tensor& tensor);
Tensor from_row_major(const Tensor& tensor);

// Bytes that the calling thread's tensors on the dry device would take, if each had its own block.
int64_t dry_bytes_in_use();

class ArenaRecord;

// While it lives, counts the tensors that the calling thread makes on the dry device, with the
// sizes that they would have in a cuda::MemoryPool. Requires: the thread has no other DryRecord.
class DryRecord {
 public:
  DryRecord();
  DryRecord(const DryRecord&) = delete;
  DryRecord& operator=(const DryRecord&) = delete;
  ~DryRecord();

  int64_t bytes_in_use() const;
  int64_t peak_bytes_in_use() const;
  // Size of a pool, in one piece, in which each tensor finds room beside those that live at the
  // time.
  int64_t pool_bytes() const;

 private:
  std::shared_ptr<ArenaRecord> record_;
};

}  // namespace lockstep
#pragma GCC visibility pop
