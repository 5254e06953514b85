#include "core/cuda/device.h"

#include <cstdlib>
#include <mutex>
#include <utility>

#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include "core/check.h"
#include "core/cuda/error.h"
#include "core/error.h"

namespace lockstep::cuda {
namespace {

std::mutex mutex;
DeviceProperties chosen;            // set once
thread_local bool current = false;  // the chosen one is this thread's

std::string mask_text() {
  const char* const mask = std::getenv("CUDA_VISIBLE_DEVICES");
  return mask == nullptr ? "CUDA_VISIBLE_DEVICES is not set"
                         : fmt::format("CUDA_VISIBLE_DEVICES={}", mask);
}

// "13.0" of 13000; empty for 0.
std::string version_text(int version) {
  return version == 0 ? "" : fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

Obstacle insufficient_driver() {
  if (driver_version().empty()) {
    return {.kind = Obstacle::Kind::kNoDriver,
            .error = EnvironmentError(
                "CUDA has no driver",
                fmt::format("libcuda.so, which this build's CUDA {} needs, is missing",
                            runtime_version()),
                "nvidia-smi; for a container docker run --gpus all",
                Remedy::kCpu)};
  }
  return {
      .kind = Obstacle::Kind::kOldDriver,
      .error = EnvironmentError(
          "the CUDA driver is too old",
          fmt::format("it knows CUDA {}, this build uses {}", driver_version(), runtime_version()),
          "a newer driver, or a build with an older toolkit",
          Remedy::kCpu)};
}

Obstacle broken_driver(cudaError_t status) {
  const bool lacks_fabric = status == cudaErrorSystemNotReady;  // of GPUs behind NVSwitch
  return {.kind = Obstacle::Kind::kBroken,
          .error = EnvironmentError(
              "CUDA does not start",
              fmt::format("{}: {}", cudaGetErrorName(status), cudaGetErrorString(status)),
              lacks_fabric
                  ? "systemctl start nvidia-fabricmanager, of the driver's version"
                  : "nvidia-smi, which must work first; after a driver's update, a restart of the "
                    "machine",
              Remedy::kCpu)};
}

int count_devices() {
  if (std::optional<Obstacle> obstacle = find_obstacle()) throw std::move(obstacle->error);
  return visible_devices();
}

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    const bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    text += fmt::format("{}{:02x}", dash ? "-" : "", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

DeviceProperties properties_of(int index) {
  cudaDeviceProp found{};
  check(cudaGetDeviceProperties(&found, index), "device");
  return {.index = index,
          .name = found.name,
          .uuid = uuid_text(found.uuid),
          .major = found.major,
          .minor = found.minor,
          .multiprocessors = found.multiProcessorCount,
          .total_bytes = found.totalGlobalMem};
}

void check_architecture(const DeviceProperties& properties) {
  if (properties.major >= kOldestMajor) return;
  throw EnvironmentError(fmt::format("{} is too old for this build", properties.name),
                         fmt::format("its compute capability is {}.{}, the kernels need {}.0",
                                     properties.major,
                                     properties.minor,
                                     kOldestMajor),
                         "a newer device",
                         Remedy::kCpu);
}

void make_current() {
  check(cudaSetDevice(chosen.index), "device");
  current = true;
}

// Requires: `mutex` is held.
void choose(int local_rank) {
  const int index = local_rank % count_devices();
  if (chosen.index >= 0 && chosen.index != index) {
    throw InternalError(
        fmt::format("[select_device] device: got {}, expected {}, which was chosen earlier",
                    index,
                    chosen.index));
  }
  if (chosen.index < 0) {
    DeviceProperties properties = properties_of(index);
    check_architecture(properties);
    chosen = std::move(properties);
  }
  make_current();
}

}  // namespace

std::optional<Obstacle> find_obstacle() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver) return insufficient_driver();
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0)) {
    return Obstacle{.kind = Obstacle::Kind::kNoDevice,
                    .error = EnvironmentError(
                        "no CUDA device is visible",
                        fmt::format("{} ({})", cudaGetErrorString(cudaErrorNoDevice), mask_text()),
                        "nvidia-smi -L, or another mask",
                        Remedy::kCpu)};
  }
  if (status != cudaSuccess) return broken_driver(status);
  return std::nullopt;
}

std::string driver_version() {
  int version = 0;
  return cudaDriverGetVersion(&version) == cudaSuccess ? version_text(version) : "";
}

std::string runtime_version() {
  return version_text(CUDART_VERSION);
}

int visible_devices() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

std::vector<DeviceProperties> list_devices() {
  std::vector<DeviceProperties> devices;
  const int count = visible_devices();
  devices.reserve(static_cast<size_t>(count));
  for (int index = 0; index < count; ++index) devices.push_back(properties_of(index));
  return devices;
}

int visible_device(const std::string& uuid) {
  for (int index = visible_devices() - 1; index >= 0; --index) {
    if (properties_of(index).uuid == uuid) return index;
  }
  return -1;
}

void select_device(int local_rank, int local_ranks) {
  LS_CHECK(local_rank >= 0 && local_rank < local_ranks,
           "[select_device] local rank: got {} of {}",
           local_rank,
           local_ranks);
  const std::lock_guard lock(mutex);
  choose(local_rank);
}

void ensure_device() {
  if (current) return;
  const std::lock_guard lock(mutex);
  if (chosen.index < 0) return choose(0);
  make_current();
}

const DeviceProperties& device_properties() {
  ensure_device();
  return chosen;
}

size_t free_bytes() {
  ensure_device();
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "device");
  return free;
}

}  // namespace lockstep::cuda
