#include "core/cuda/device.h"

#include <cstdlib>
#include <optional>

#include <cuda_runtime_api.h>

#include "core/cuda/error.h"
#include "core/error.h"

namespace lockstep::cuda {
namespace {

constexpr int kOldestMajor = 8;  // sm_80; newer architectures compile the PTX

std::optional<DeviceProperties> chosen;

std::string mask_text() {
  const char* const mask = std::getenv("CUDA_VISIBLE_DEVICES");
  return mask == nullptr ? "CUDA_VISIBLE_DEVICES is not set"
                         : fmt::format("CUDA_VISIBLE_DEVICES={}", mask);
}

int count_devices() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver || status == cudaErrorNoDevice || count == 0) {
    const bool driver = status != cudaErrorInsufficientDriver;
    throw EnvironmentError(
        driver ? "no CUDA device is visible" : "CUDA has no driver, or one that is too old",
        fmt::format("{} ({})", cudaGetErrorString(status), mask_text()),
        driver ? "nvidia-smi -L, another mask, or --device cpu"
               : "nvidia-smi, a newer driver, or --device cpu");
  }
  check(status, "device");
  return count;
}

DeviceProperties properties_of(int index) {
  cudaDeviceProp found{};
  check(cudaGetDeviceProperties(&found, index), "device");
  return {.index = index,
          .name = found.name,
          .major = found.major,
          .minor = found.minor,
          .multiprocessors = found.multiProcessorCount,
          .total_bytes = found.totalGlobalMem,
          .shared_bytes_per_block = found.sharedMemPerBlockOptin};
}

}  // namespace

int visible_devices() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

void select_device(int local_rank, int local_ranks) {
  const int devices = count_devices();
  if (local_ranks > devices) {
    throw EnvironmentError(fmt::format("{} ranks on this host, {} CUDA device{}",
                                       local_ranks,
                                       devices,
                                       devices == 1 ? "" : "s"),
                           fmt::format("each rank needs a device of its own ({})", mask_text()),
                           fmt::format("mpirun -np {}, more hosts, or --device cpu", devices));
  }
  DeviceProperties properties = properties_of(local_rank);
  if (properties.major < kOldestMajor) {
    throw EnvironmentError(fmt::format("{} is too old for this build", properties.name),
                           fmt::format("its compute capability is {}.{}, the kernels need {}.0",
                                       properties.major,
                                       properties.minor,
                                       kOldestMajor),
                           "a newer device, or --device cpu");
  }
  check(cudaSetDevice(local_rank), "device");
  chosen = std::move(properties);
}

void ensure_device() {
  if (!chosen) select_device(0, 1);
}

const DeviceProperties& device_properties() {
  ensure_device();
  return *chosen;
}

}  // namespace lockstep::cuda
