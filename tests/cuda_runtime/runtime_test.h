// Fixture and kernels of tests on the fake CUDA runtime, for files compiled as emulated CUDA.
#pragma once

#include <cstdlib>

#include <gtest/gtest.h>

#include "core/cuda/launch.h"
#include "core/cuda/memory.h"
#include "core/error.h"
#include "core/stream.h"
#include "core/transfer.h"
#include "tests/emulation/runtime/fake_runtime.h"

namespace lockstep::testing {

using emulation::reset_runtime;
using emulation::runtime_counters;
using emulation::set_stream_order;
using emulation::StreamOrder;

// A fresh device that runs what is queued as late as it may, and a cache for its memory.
class RuntimeTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { unsetenv("LOCKSTEP_NO_CUDA_CACHE"); }
  RuntimeTest() {  // before the members of tests
    reset_runtime();
    set_stream_order(StreamOrder::kLazy);
  }
  ~RuntimeTest() override { reset_runtime(); }
};

// For tests that fail a device or choose one, each in a process of its own.
class ProcessTest : public RuntimeTest {
 protected:
  ProcessTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// As a program's main: an Error is printed and gives the exit status.
template <class Body>
[[noreturn]] void run_as_program(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    std::fputs(format_error(error).c_str(), stderr);
    std::_Exit(static_cast<int>(error.code()));
  }
  std::_Exit(0);
}

inline Tensor device_floats(int64_t count) {
  return Tensor::empty({count}, Dtype::kF32, Device::kCuda);
}

namespace {

constexpr unsigned kThreads = 64;

__global__ void fill_kernel(float* out, float value, int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) out[i] = value;
}
__global__ void axpy_kernel(float* out, const float* in, float factor, int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) out[i] += factor * in[i];
}
__global__ void scale_kernel(float* out, float factor, int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) out[i] *= factor;
}
__global__ void empty_kernel() {}
// A barrier that the other threads never reach: a launch failure.
__global__ void faulty_kernel() {
  if (threadIdx.x == 0) __syncthreads();
}

[[maybe_unused]] void fill(Stream& stream, Tensor& out, float value) {
  const cuda::LaunchShape shape = {cuda::blocks_for(out.numel(), kThreads), kThreads};
  cuda::launch(stream, "fill", shape, fill_kernel, out.data<float>(), value, out.numel());
}
[[maybe_unused]] void axpy(Stream& stream, Tensor& out, const Tensor& in, float factor) {
  const cuda::LaunchShape shape = {cuda::blocks_for(out.numel(), kThreads), kThreads};
  cuda::launch(
      stream, "axpy", shape, axpy_kernel, out.data<float>(), in.data<float>(), factor, out.numel());
}
[[maybe_unused]] void scale(Stream& stream, Tensor& out, float factor) {
  const cuda::LaunchShape shape = {cuda::blocks_for(out.numel(), kThreads), kThreads};
  cuda::launch(stream, "scale", shape, scale_kernel, out.data<float>(), factor, out.numel());
}
[[maybe_unused]] void launch_nothing(Stream& stream, const cuda::LaunchShape& shape) {
  cuda::launch(stream, "nothing", shape, empty_kernel);
}
[[maybe_unused]] void fail(Stream& stream) {
  cuda::launch(stream, "faulty", {1, kThreads}, faulty_kernel);
}

}  // namespace
}  // namespace lockstep::testing
