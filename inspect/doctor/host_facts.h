// Reads what this machine gives this process, GPUs aside.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace lockstep::trainers {

// Kernels of this build for the processor.
struct CpuFacts {
  std::string level = {};    // "x86-64-v3"
  std::string problem = {};  // why there is none; empty: there is one
  std::string onednn = {};   // "2.6.3"; "none" in a build without it
  bool has_bf16 = false;     // oneDNN computes in it

  bool can_train() const { return problem.empty() && onednn != "none"; }
};

// Limits that a container's cgroup sets; absent: none.
struct CgroupLimits {
  std::optional<double> cores = {};
  std::optional<int64_t> memory = {};  // bytes
};

struct HostFacts {
  CpuFacts cpu = {};
  int64_t cores = 1;         // of the machine
  int64_t usable_cores = 1;  // in this process's affinity mask
  CgroupLimits limits = {};
  int64_t memory = 0;                         // bytes
  std::optional<int64_t> shared = {};         // bytes of /dev/shm
  std::optional<int64_t> open_files = {};     // ulimit -n; absent: no limit
  std::optional<int64_t> locked_memory = {};  // ulimit -l in bytes; absent: no limit
  std::string mpi = {};                       // mpi_library()
  bool has_mpirun = false;                    // on PATH
};

// Returns the smallest limits among the cgroup of this process and those above it, of version 2 or
// 1. `root` holds proc/self/cgroup and sys/fs/cgroup.
CgroupLimits read_cgroup(const std::filesystem::path& root);

CpuFacts read_cpu();
HostFacts read_host();

}  // namespace lockstep::trainers
