// The API's functions for devices.
#include <cstdio>

#include "tests/emulation/runtime/capture.h"
#include "tests/emulation/runtime/libraries.h"
#include "tests/emulation/runtime/limits.h"
#include "tests/emulation/runtime/state.h"

using namespace lockstep::emulation;

namespace {

const FakeDevice* device_at(int index) {
  const auto& devices = state().machine.devices;
  const bool there = index >= 0 && static_cast<size_t>(index) < devices.size();
  return there ? &devices[static_cast<size_t>(index)] : nullptr;
}

}  // namespace

extern "C" {

// These two functions show core/cuda/library.cpp that no real library can run here.
const void* lockstep_emulated_library(const char* soname) {
  return find_library(soname);
}
void* lockstep_emulated_symbol(const void* library, const char* name) {
  return static_cast<const FakeLibrary*>(library)->symbol(name);
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = state().machine.driver_version;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  return api([&] {
    *count = static_cast<int>(state().machine.devices.size());
    return cudaSuccess;
  });
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int index) {
  return api([&] {
    const FakeDevice* const device = device_at(index);
    if (device == nullptr) return cudaErrorInvalidDevice;
    *properties = {};
    std::snprintf(properties->name, sizeof(properties->name), "%s", device->name.c_str());
    properties->uuid.bytes[15] =
        static_cast<char>((device->number < 0 ? index : device->number) + 1);
    properties->major = device->major;
    properties->minor = device->minor;
    properties->multiProcessorCount = device->multiprocessors;
    properties->totalGlobalMem = device->memory_bytes;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = kThreadsPerBlock;
    properties->sharedMemPerBlock = kSharedBytes;
    properties->sharedMemPerBlockOptin = kDynamicSharedBytes;
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int index) {
  cudaDeviceProp properties;
  const cudaError_t status = cudaGetDeviceProperties(&properties, index);
  if (status != cudaSuccess) return status;
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      *value = properties.major;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = properties.minor;
      return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
      *value = properties.multiProcessorCount;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(properties.sharedMemPerBlockOptin);
      return cudaSuccess;
    default:
      return api([] { return cudaErrorInvalidValue; });
  }
}
cudaError_t cudaSetDevice(int index) {
  return api([&] {
    if (device_at(index) == nullptr) return cudaErrorInvalidDevice;
    this_thread().device = index;
    return cudaSuccess;
  });
}
cudaError_t cudaGetDevice(int* index) {
  return api([&] {
    *index = this_thread().device;
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return api([&] {
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceSynchronize() {
  return api([&] {
    if (const cudaError_t status = refuse_while_any_captures(); status != cudaSuccess)
      return status;
    ++runtime_counters.synchronizations;
    state().queues.finish_all();
    return cudaSuccess;
  });
}

}  // extern "C"
