// A CUDA runtime without a device, linked in place of libcudart. Everything runs when it is queued.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda_runtime_api.h>

#include "tests/emulation/access_check.h"
#include "tests/emulation/launch.h"

using namespace lockstep::emulation;

struct CUstream_st {};
struct CUevent_st {};

namespace {

cudaError_t sticky = cudaSuccess;

}  // namespace

namespace lockstep::emulation {

cudaError_t enqueue_launch(
    Call call, dim3 grid, dim3 block, size_t dynamic_shared_bytes, cudaStream_t) {
  if (sticky != cudaSuccess) return sticky;
  try {
    run_grid(call, grid, block, dynamic_shared_bytes);
  } catch (const Fault& fault) {
    std::fprintf(stderr, "emulated device fault: %s\n", fault.what());
    sticky = cudaErrorLaunchFailure;
  }
  return cudaSuccess;
}

}  // namespace lockstep::emulation

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::snprintf(properties->name, sizeof(properties->name), "emulated device");
  properties->major = 9;
  properties->multiProcessorCount = 4;
  properties->sharedMemPerBlockOptin = 227 << 10;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) {
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** memory, size_t bytes) {
  if (posix_memalign(memory, 256, bytes == 0 ? 1 : bytes) != 0) return cudaErrorMemoryAllocation;
  std::memset(*memory, 0xff, bytes);
  permit(*memory, bytes, Memory::kDevice);
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  withdraw(memory);
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** memory, size_t bytes) {
  if (posix_memalign(memory, 4096, bytes == 0 ? 1 : bytes) != 0) return cudaErrorMemoryAllocation;
  permit(*memory, bytes, Memory::kPinned);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  withdraw(memory);
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = *total = size_t{1} << 30;
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(
    void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
  std::memcpy(to, from, bytes);
  note_written(to, bytes);
  return sticky;
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t) {
  std::memset(to, value, bytes);
  note_written(to, bytes);
  return sticky;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new CUstream_st;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return sticky;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) {
  return sticky;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) {
  return sticky;
}
cudaError_t cudaEventQuery(cudaEvent_t) {
  return sticky;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) {
  return sticky;
}
cudaError_t cudaGetLastError() {
  return sticky;
}
const char* cudaGetErrorString(cudaError_t status) {
  return status == cudaErrorLaunchFailure ? "unspecified launch failure" : "unknown error";
}

}  // extern "C"
