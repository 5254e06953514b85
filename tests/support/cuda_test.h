// Tensors on the device for tests of CUDA kernels, either on hardware or emulated
// (tests/emulation).
#pragma once

#include <gtest/gtest.h>

#include "core/stream.h"
#include "core/transfer.h"
#include "tests/support/poisoned_tensor.h"

namespace lockstep::testing {

class CudaTest : public ::testing::Test {
 protected:
  Tensor upload(const Tensor& tensor) { return to_device(stream_, tensor); }
  Tensor download(const Tensor& tensor) { return to_cpu(stream_, tensor); }
  // An output tensor with every bit set.
  Tensor poisoned(const Shape& shape, Dtype dtype) { return upload(poisoned_tensor(shape, dtype)); }
  // Uploads the values to an address one element past an aligned one.
  Tensor upload_misaligned(const Tensor& tensor) {
    const Tensor rows = Tensor::empty({tensor.numel() + 1}, tensor.dtype(), Device::kCuda);
    Tensor shifted = rows.slice(1, tensor.numel()).view(tensor.shape());
    transfer(stream_, tensor, shifted);
    stream_.synchronize();
    return shifted;
  }

  Stream stream_{Device::kCuda};
};

// A fixture for tests that run once for each parameter.
template <class T>
class CudaTestWith : public CudaTest, public ::testing::WithParamInterface<T> {};

}  // namespace lockstep::testing
