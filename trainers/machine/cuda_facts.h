// Looks for GPUs and NVIDIA's libraries, as far as this process sees them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/cuda/device.h"

namespace lockstep::trainers {

struct LibraryFacts {
  std::string version = {};
  std::string problem = {};  // why there is no version; empty: there is one
  bool is_expected = false;  // this build opens it: a run fails without it
};

struct CudaFacts {
  std::optional<cuda::Obstacle> obstacle = {};  // absent: there are devices
  bool has_traces = false;                      // has_gpu_traces()
  std::optional<std::string> mask = {};         // CUDA_VISIBLE_DEVICES
  std::string driver = {}, toolkit = {};        // "13.0"; may be empty
  std::vector<cuda::DeviceProperties> devices = {};
  LibraryFacts cudnn = {}, cublaslt = {}, nccl = {};

  // Kernels of this build run on all devices.
  bool is_usable() const;
};

// Whether an NVIDIA driver is loaded, as seen without CUDA: /proc/driver/nvidia or /dev/nvidia* of
// `root`.
bool has_gpu_traces(const std::filesystem::path& root = "/");

// Looks for GPUs alone, which takes milliseconds. Never throws for what is missing.
CudaFacts read_gpus();
// Opens the libraries too.
CudaFacts read_cuda();
LibraryFacts read_cudnn();

}  // namespace lockstep::trainers
