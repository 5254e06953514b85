// Tensors between the CPU and the device of a stream.
#pragma once

#include "core/stream.h"
#include "core/tensor.h"

#pragma GCC visibility push(default)
namespace lockstep {

// Queues a copy of `from` into `to`, tensors alike, each on the CPU or on the stream's device.
// Ordinary CPU memory may be used again at once; pinned memory (core/cuda/memory.h) when the stream
// has got there. Errors: ShapeError, DtypeError, DeviceError, CudaError.
void transfer(Stream& stream, const Tensor& from, Tensor& to);

// Copies that are there on return. A tensor that is there already is returned as it is.
Tensor to_device(Stream& stream, const Tensor& tensor);
Tensor to_cpu(Stream& stream, const Tensor& tensor);

// Copies without a stream, for rare use: they wait for all streams.
Tensor to_device(Device device, const Tensor& tensor);
Tensor to_cpu(const Tensor& tensor);
// Copies `from` over `to`. Nothing on the dry device.
void overwrite(const Tensor& from, Tensor& to);

}  // namespace lockstep
#pragma GCC visibility pop
