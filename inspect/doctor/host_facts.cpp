#include "inspect/doctor/host_facts.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <system_error>

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "comm/messages/mpi_session.h"
#include "core/error.h"
#include "core/thread_pool.h"
#include "core/words.h"
#include "kernels/support/isa.h"
#include "kernels/support/onednn/version.h"

namespace lockstep::trainers {
namespace {

namespace fs = std::filesystem;

// Files of /proc and /sys have no size.
std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "0::/user.slice" of version 2; empty under version 1.
std::string cgroup_path(const fs::path& root) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::/")) return line.substr(4);
  }
  return {};
}

template <class T>
void lower(std::optional<T>& limit, T other) {
  if (other > 0) limit = limit ? std::min(*limit, other) : other;
}

// "max" is no number.
void add_memory(const std::string& bytes, CgroupLimits& limits) {
  constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max() / 2;  // version 1 writes more
  const auto value = parse_int(bytes);
  if (value && *value < kNoLimit) lower(limits.memory, *value);
}

void add_cores(const std::string& quota, const std::string& period, CgroupLimits& limits) {
  const auto used = parse_int(quota);  // microseconds; -1: no limit
  const auto of = parse_int(period);
  if (used && of && *of > 0) {
    lower(limits.cores, static_cast<double>(*used) / static_cast<double>(*of));
  }
}

std::optional<int64_t> limit_of(__rlimit_resource resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return static_cast<int64_t>(limit.rlim_cur);
}

std::optional<int64_t> size_of_disk(const char* path) {
  struct statvfs disk{};
  if (statvfs(path, &disk) != 0) return std::nullopt;
  return static_cast<int64_t>(disk.f_blocks * disk.f_frsize);
}

bool is_on_path(const char* program) {
  const char* const path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nobody writes it
  if (path == nullptr) return false;
  return std::ranges::any_of(split_words(path, ':'), [&](std::string_view folder) {
    return access((fs::path(folder) / program).c_str(), X_OK) == 0;
  });
}

}  // namespace

CgroupLimits read_cgroup(const fs::path& root) {
  CgroupLimits limits;
  const fs::path top = root / "sys/fs/cgroup";
  for (fs::path folder = top / cgroup_path(root);; folder = folder.parent_path()) {
    const std::string line = first_line(folder / "cpu.max");  // "200000 100000"
    const auto blank = line.find(' ');
    if (blank != std::string::npos) {
      add_cores(line.substr(0, blank), line.substr(blank + 1), limits);
    }
    add_memory(first_line(folder / "memory.max"), limits);
    if (folder == top || !folder.has_relative_path()) break;
  }
  add_cores(
      first_line(top / "cpu/cpu.cfs_quota_us"), first_line(top / "cpu/cpu.cfs_period_us"), limits);
  add_memory(first_line(top / "memory/memory.limit_in_bytes"), limits);
  return limits;
}

CpuFacts read_cpu() {
  CpuFacts cpu = {.onednn = kernels::onednn_version()};
  try {
    cpu.level = name_of(kernels::isa_level());
    cpu.has_bf16 = kernels::onednn_has_bf16();
  } catch (const Error& error) {
    cpu.problem = error.what();
  }
  return cpu;
}

HostFacts read_host() {
  return {.cpu = read_cpu(),
          .cores = std::max<int64_t>(1, sysconf(_SC_NPROCESSORS_ONLN)),
          .usable_cores = usable_cores(),
          .limits = read_cgroup("/"),
          .memory = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE),
          .shared = size_of_disk("/dev/shm"),
          .open_files = limit_of(RLIMIT_NOFILE),
          .locked_memory = limit_of(RLIMIT_MEMLOCK),
          .mpi = comm::mpi_library(),
          .has_mpirun = is_on_path("mpirun")};
}

}  // namespace lockstep::trainers
