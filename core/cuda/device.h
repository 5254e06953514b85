// Chooses the GPU of this process. No toolkit header is included here, as in all of core/cuda but
// launch.h and error.h: a build without CUDA has the same functions (core/cuda_absent.cpp), which
// refuse.
#pragma once

#include <cstddef>
#include <string>

namespace lockstep::cuda {

struct DeviceProperties {
  int index = -1;  // among the visible ones; -1: none
  std::string name;
  std::string uuid;          // as nvidia-smi -L prints it, and CUDA_VISIBLE_DEVICES takes it
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  size_t total_bytes = 0;
  size_t shared_bytes_per_block = 0;  // the most a launch may ask for
};

// Devices that CUDA_VISIBLE_DEVICES leaves. 0 without a driver or a device.
int visible_devices();
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
