// Chooses the GPU of this process. No header of core/cuda but launch.h, launch_shape.h and error.h
// includes a CUDA toolkit header: a build without CUDA has the same functions
// (core/cuda_absent.cpp), which throw or report that there is no device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"

#pragma GCC visibility push(default)
namespace lockstep::cuda {

inline constexpr int kOldestMajor = 8;  // sm_80; newer architectures compile the PTX

struct DeviceProperties {
  int index = -1;  // among the visible devices; -1: none
  std::string name;
  std::string uuid;          // as nvidia-smi -L prints it, and CUDA_VISIBLE_DEVICES takes it
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  size_t total_bytes = 0;

  // "sm_90"
  std::string architecture() const { return "sm_" + std::to_string(major) + std::to_string(minor); }
  // "NVIDIA H200 (sm_90)"
  std::string text() const { return name + " (" + architecture() + ")"; }
};

// Says why this process can use no device.
struct Obstacle {
  enum class Kind : uint8_t {
    kNotBuilt,   // this build has no CUDA
    kNoDriver,   // libcuda is missing
    kOldDriver,  // the driver supports only an older CUDA than the build's
    kNoDevice,   // there is none, or CUDA_VISIBLE_DEVICES hides all
    kBroken,     // CUDA fails to start
  };
  Kind kind = Kind::kNotBuilt;
  EnvironmentError error;  // what select_device() throws
};
// Returns nothing when a device is visible. Does not choose a device.
std::optional<Obstacle> find_obstacle();

// The newest CUDA version that the driver supports, and the version that this build uses, as
// "13.0". Empty without a driver, and in a build without CUDA.
std::string driver_version();
std::string runtime_version();

// The number of devices that CUDA_VISIBLE_DEVICES leaves. 0 where there is an obstacle.
int visible_devices();
// Properties of each visible device. Errors: EnvironmentError.
std::vector<DeviceProperties> list_devices();
// Index of the visible device with that UUID; -1: none.
int visible_device(const std::string& uuid);

// Chooses this process's device once and for all: visible device local_rank modulo their number, so
// that ranks share devices when there are more ranks. local_ranks: processes on this host. Errors:
// EnvironmentError when there is no driver, no device, or no kernel for its architecture in this
// build; InternalError after a different choice. Requires: 0 <= local_rank < local_ranks.
void select_device(int local_rank, int local_ranks);
// Chooses device 0 if none was chosen yet, and makes the chosen device current in the calling
// thread, since a thread begins with device 0. Functions that create streams or memory call it. A
// thread that launches work without having created any must call it first. Errors: as
// select_device.
void ensure_device();

// Properties of the chosen device, and its free memory in bytes. Errors: as ensure_device.
const DeviceProperties& device_properties();
size_t free_bytes();

}  // namespace lockstep::cuda
#pragma GCC visibility pop
