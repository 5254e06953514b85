#include "core/transfer.h"

#include <cstring>

#include <fmt/core.h>

#include "core/cuda/memory.h"
#include "core/cuda/stream.h"
#include "core/cuda/watch.h"

namespace lockstep {
namespace {

void check_place(const Stream& stream, const char* name, const Tensor& tensor) {
  if (tensor.device() == Device::kCpu || tensor.device() == stream.device()) return;
  throw DeviceError(fmt::format("[transfer] {}: on {}, the stream runs on {}",
                                name,
                                name_of(tensor.device()),
                                name_of(stream.device())));
}

Tensor moved(Stream& stream, const Tensor& tensor, Device device) {
  if (tensor.device() == device) return tensor;
  Tensor out = Tensor::empty(tensor.shape(), tensor.dtype(), device);
  if (stream.cuda() != nullptr) cuda::wait_watched(stream.cuda());
  transfer(stream, tensor, out);
  stream.synchronize();
  return out;
}

void check_alike(const Tensor& from, const Tensor& to) {
  if (from.shape() != to.shape()) {
    throw ShapeError(fmt::format(
        "[transfer] to: shape {}, expected {}", to_string(to.shape()), to_string(from.shape())));
  }
  if (from.dtype() != to.dtype()) {
    throw DtypeError(fmt::format(
        "[transfer] to: dtype {}, expected {}", name_of(to.dtype()), name_of(from.dtype())));
  }
}

}  // namespace

void transfer(Stream& stream, const Tensor& from, Tensor& to) {
  check_place(stream, "from", from);
  check_place(stream, "to", to);
  check_alike(from, to);
  if (from.nbytes() == 0) return;
  if (stream.cuda() != nullptr) {
    cuda::copy_bytes(stream.cuda(), to.bytes(), from.bytes(), from.nbytes());
  } else if (stream.device() == Device::kCpu) {
    std::memcpy(to.bytes(), from.bytes(), from.nbytes());
  }
}

Tensor to_device(Stream& stream, const Tensor& tensor) {
  return moved(stream, tensor, stream.device());
}

Tensor to_cpu(Stream& stream, const Tensor& tensor) {
  return moved(stream, tensor, Device::kCpu);
}

Tensor to_device(Device device, const Tensor& tensor) {
  if (tensor.device() == device) return tensor;
  Tensor out = Tensor::empty(tensor.shape(), tensor.dtype(), device);
  overwrite(tensor, out);
  return out;
}

Tensor to_cpu(const Tensor& tensor) {
  return to_device(Device::kCpu, tensor);
}

void overwrite(const Tensor& from, Tensor& to) {
  check_alike(from, to);
  if (from.nbytes() == 0 || from.bytes() == nullptr || to.bytes() == nullptr) return;
  if (from.device() == Device::kCuda || to.device() == Device::kCuda) {
    cuda::copy_when_idle(to.bytes(), from.bytes(), from.nbytes());
  } else {
    std::memcpy(to.bytes(), from.bytes(), from.nbytes());
  }
}

}  // namespace lockstep
