// Finds the GPUs and NVIDIA's libraries that this process can see.
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

  // Whether kernels of this build run on all devices.
  bool is_usable() const;
};

// Whether an NVIDIA driver is loaded, as seen without CUDA: /proc/driver/nvidia or /dev/nvidia* of
// `root`.
bool has_gpu_traces(const std::filesystem::path& root = "/");

// Looks only for GPUs, which takes milliseconds. Does not throw for what is missing.
CudaFacts read_gpus();
// Looks for GPUs and opens the libraries of CUDA. Does not throw for what is missing.
CudaFacts read_cuda();
LibraryFacts read_cudnn();

}  // namespace lockstep::trainers
