// Chooses the GPU of this process. No toolkit header is included here, as in all of core/cuda but
// launch.h and error.h: a build without CUDA has the same functions (core/cuda_absent.cpp), which
// refuse.
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
  int index = -1;  // among the visible ones; -1: none
  std::string name;
  std::string uuid;          // as nvidia-smi -L prints it, and CUDA_VISIBLE_DEVICES takes it
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  size_t total_bytes = 0;
  size_t shared_bytes_per_block = 0;  // the most a launch may ask for

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
    kOldDriver,  // it knows an older CUDA than the build's
    kNoDevice,   // none is there, or CUDA_VISIBLE_DEVICES hides all
    kBroken,     // CUDA fails to start
  };
  Kind kind = Kind::kNotBuilt;
  EnvironmentError error;  // what select_device() throws
};
// Nothing where a device is visible. Chooses none.
std::optional<Obstacle> find_obstacle();

// "13.0": the newest CUDA that the driver knows, and the one that this build uses. Empty without a
// driver, and in a build without CUDA.
std::string driver_version();
std::string runtime_version();

// Devices that CUDA_VISIBLE_DEVICES leaves. 0 where there is an obstacle.
int visible_devices();
// Properties of each. Errors: EnvironmentError.
std::vector<DeviceProperties> list_devices();
// The one of that UUID among them; -1: none.
int visible_device(const std::string& uuid);

// Makes a device this process's for good: the visible ones in turn, so that ranks share them where
// there are more. local_ranks: processes on this host. Errors: EnvironmentError, in three lines: no
// driver, no device, an architecture that no kernel of this build fits; InternalError after another
// choice. Requires: 0 <= local_rank < local_ranks.
void select_device(int local_rank, int local_ranks);
// Chooses device 0 if none was chosen yet, and makes the chosen one the calling thread's: threads
// begin with device 0. What makes streams or memory calls it; another thread than theirs that
// launches calls it first. Errors: as select_device.
void ensure_device();

// Properties of the chosen device, and its memory that nobody holds now. Errors: as ensure_device.
const DeviceProperties& device_properties();
size_t free_bytes();

}  // namespace lockstep::cuda
#pragma GCC visibility pop
