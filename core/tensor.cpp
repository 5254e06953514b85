#include "core/tensor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "core/allocator.h"
#include "core/check.h"
#include "core/cuda/memory.h"
#include "core/round_up.h"

namespace lockstep {
namespace {

thread_local int64_t dry_bytes = 0;
thread_local std::shared_ptr<ArenaRecord> dry_record;

// A null pointer whose bytes are counted as in use until its last copy is destroyed.
std::shared_ptr<std::byte> dry_block(size_t bytes) {
  constexpr size_t kUnit = cuda::MemoryPool::kUnit;
  const size_t block = round_up(CachingAllocator::rounded(bytes), kUnit);
  const auto rounded = static_cast<int64_t>(block);
  dry_bytes += rounded;
  const size_t number = dry_record ? dry_record->allocate(bytes) : 0;
  return {nullptr, [rounded, number, record = dry_record](std::byte*) {
            dry_bytes -= rounded;
            if (record) record->free(number);
          }};
}

// Copies [n][rows][cols] elements of kSize bytes into [n][cols][rows].
template <size_t kSize>
void transpose_inner(const std::byte* in, std::byte* out, size_t n, size_t rows, size_t cols) {
  for (size_t i = 0; i < n; ++i, in += rows * cols * kSize) {
    for (size_t c = 0; c < cols; ++c) {
      for (size_t r = 0; r < rows; ++r, out += kSize) {
        std::memcpy(out, in + (r * cols + c) * kSize, kSize);
      }
    }
  }
}

auto transpose_inner_of(size_t size) {
  switch (size) {
    case 1:
      return transpose_inner<1>;
    case 2:
      return transpose_inner<2>;
    case 4:
      return transpose_inner<4>;
    default:
      return transpose_inner<8>;
  }
}

Tensor reorder(const Tensor& tensor, bool to_channels_last) {
  if (tensor.device() != Device::kCpu) {
    throw DeviceError(
        fmt::format("[reorder] device: got {}, expected cpu", name_of(tensor.device())));
  }
  Tensor out = Tensor::empty(tensor.shape(), tensor.dtype());
  if (tensor.shape().rank() != 4) {
    if (tensor.nbytes() != 0) std::memcpy(out.bytes(), tensor.bytes(), tensor.nbytes());
    return out;
  }
  const auto images = static_cast<size_t>(tensor.shape()[0]);
  const auto channels = static_cast<size_t>(tensor.shape()[1]);
  const auto pixels = static_cast<size_t>(tensor.shape()[2] * tensor.shape()[3]);
  const auto [rows, cols] =
      to_channels_last ? std::pair(channels, pixels) : std::pair(pixels, channels);
  transpose_inner_of(size_of(tensor.dtype()))(tensor.bytes(), out.bytes(), images, rows, cols);
  return out;
}

}  // namespace

int64_t dry_bytes_in_use() {
  return dry_bytes;
}

DryRecord::DryRecord() : record_(std::make_shared<ArenaRecord>(cuda::MemoryPool::kUnit)) {
  LS_CHECK(dry_record == nullptr, "[dry_record] another one lives");
  dry_record = record_;
}

DryRecord::~DryRecord() {
  dry_record.reset();
}

int64_t DryRecord::bytes_in_use() const {
  return static_cast<int64_t>(record_->bytes_in_use());
}

int64_t DryRecord::peak_bytes_in_use() const {
  return static_cast<int64_t>(record_->peak_bytes_in_use());
}

int64_t DryRecord::pool_bytes() const {
  return static_cast<int64_t>(record_->arena_bytes());
}

Tensor Tensor::empty(const Shape& shape, Dtype dtype, Device device) {
  if (shape.numel() > INT64_MAX / static_cast<int64_t>(size_of(dtype))) {
    throw ShapeError(
        fmt::format("[tensor] bytes: {} of {} overflow 64 bits", to_string(shape), name_of(dtype)));
  }
  Tensor tensor = wrap(nullptr, shape, dtype, device);
  const size_t bytes = tensor.nbytes();
  if (device == Device::kDry) {
    tensor.storage_ = dry_block(bytes);
    return tensor;
  }
  if (const auto pool = device == Device::kCuda ? cuda::pool_in_use() : nullptr) {
    tensor.storage_ =
        std::shared_ptr<std::byte>(static_cast<std::byte*>(pool->allocate(bytes)),
                                   [bytes, pool](std::byte* memory) { pool->free(memory, bytes); });
    return tensor;
  }
  CachingAllocator& allocator = device == Device::kCpu ? cpu_allocator() : cuda_allocator();
  auto* block = static_cast<std::byte*>(allocator.allocate(bytes));
  tensor.storage_ = std::shared_ptr<std::byte>(
      block, [bytes, &allocator](std::byte* memory) { allocator.free(memory, bytes); });
  return tensor;
}

Tensor Tensor::zeros(const Shape& shape, Dtype dtype, Device device) {
  Tensor tensor = empty(shape, dtype, device);
  if (device == Device::kCuda) {
    cuda::zero_when_idle(tensor.bytes(), tensor.nbytes());
  } else if (tensor.storage_) {
    std::memset(tensor.bytes(), 0, tensor.nbytes());
  }
  return tensor;
}

Tensor Tensor::wrap(std::shared_ptr<std::byte> data,
                    const Shape& shape,
                    Dtype dtype,
                    Device device) {
  Tensor tensor;
  tensor.storage_ = std::move(data);
  tensor.shape_ = shape;
  tensor.dtype_ = dtype;
  tensor.device_ = device;
  tensor.defined_ = true;
  return tensor;
}

Tensor Tensor::view(const Shape& shape) const {
  if (shape.numel() != numel()) {
    throw ShapeError(fmt::format("[view] shape: got {}, expected {} elements as in {}",
                                 to_string(shape),
                                 numel(),
                                 to_string(shape_)));
  }
  Tensor out = *this;
  out.shape_ = shape;
  return out;
}

Tensor Tensor::slice(int64_t first, int64_t count) const {
  if (shape_.rank() == 0 || first < 0 || count < 0 || first > shape_[0] - count) {
    throw ShapeError(
        fmt::format("[slice] rows: got {} from {} on, of {}", count, first, to_string(shape_)));
  }
  std::array<int64_t, Shape::kMaxRank> extents{};
  for (int axis = 0; axis < shape_.rank(); ++axis)
    extents[static_cast<size_t>(axis)] = shape_[axis];
  extents[0] = count;
  Tensor out = *this;
  out.shape_ = Shape(std::span<const int64_t>(extents.data(), static_cast<size_t>(shape_.rank())));
  if (storage_) {
    const size_t offset = static_cast<size_t>(first * shape_.stride0()) * size_of(dtype_);
    out.storage_ = std::shared_ptr<std::byte>(storage_, storage_.get() + offset);
  }
  return out;
}

void Tensor::throw_wrong_dtype(Dtype wanted) const {
  throw DtypeError(
      fmt::format("[tensor] data: got {}, expected {}", name_of(wanted), name_of(dtype_)));
}

Tensor to_row_major(const Tensor& tensor) {
  return reorder(tensor, false);
}
Tensor from_row_major(const Tensor& tensor) {
  return reorder(tensor, true);
}

}  // namespace lockstep
