// Tensors between the CPU and the device of a stream.
#pragma once

#include "core/stream.h"
#include "core/tensor.h"

#pragma GCC visibility push(default)
namespace lockstep {

// Queues a copy of `from` into `to`, of the same shape and dtype, each on the CPU or on the
// stream's device. Ordinary CPU memory may be used at once; pinned memory (core/cuda/memory.h) only
// after the stream has done the copy. Errors: ShapeError, DtypeError, DeviceError, CudaError.
void transfer(Stream& stream, const Tensor& from, Tensor& to);

// Return a copy, which is complete on return. A tensor that is already there is returned itself.
Tensor to_device(Stream& stream, const Tensor& tensor);
Tensor to_cpu(Stream& stream, const Tensor& tensor);

// Copies without a stream, for rare use: they wait for all streams.
Tensor to_device(Device device, const Tensor& tensor);
Tensor to_cpu(const Tensor& tensor);
// Copies `from` over `to`. Does nothing on the dry device.
void overwrite(const Tensor& from, Tensor& to);

}  // namespace lockstep
#pragma GCC visibility pop
