#include "inspect/doctor/host_findings.h"

#include <cmath>

#include <fmt/core.h>

#include "core/words.h"

namespace lockstep::trainers {
namespace {

using State = Finding::State;

constexpr int64_t kMiB = int64_t{1} << 20;

// Without them the CPU cannot train; a GPU can.
Finding cpu_finding(const CpuFacts& cpu, bool trains_on_gpu) {
  const State without = trains_on_gpu ? State::kNote : State::kBroken;
  if (!cpu.problem.empty()) {
    return {
        .subject = "CPU kernels",
        .state = State::kBroken,
        .text = cpu.problem,
        .remedy = "unset LOCKSTEP_ISA, or LOCKSTEP_ISA_LEVELS=native scripts/build_training.sh"};
  }
  if (cpu.onednn == "none") {
    return {
        .subject = "CPU kernels",
        .state = without,
        .text = "this build has no oneDNN, which trains on the CPU",
        .remedy = "scripts/setup.sh, then cmake --preset release -DLOCKSTEP_ONEDNN=ON, and build"};
  }
  return {.subject = "CPU kernels",
          .text = fmt::format("oneDNN {}, {}, bf16 {}",
                              cpu.onednn,
                              cpu.level,
                              cpu.has_bf16 ? "native" : "computed in f32")};
}

Finding cores_finding(const HostFacts& facts) {
  Finding finding = {.subject = "cores",
                     .text = fmt::format("{} of {} usable", facts.usable_cores, facts.cores)};
  const double quota = facts.limits.cores.value_or(static_cast<double>(facts.usable_cores));
  if (quota >= static_cast<double>(facts.usable_cores)) return finding;
  finding.state = State::kNote;
  finding.text += fmt::format(", but the container's quota is {:g}: more threads only wait", quota);
  finding.remedy = fmt::format("--threads {} on one rank", std::max(1.0, std::floor(quota)));
  return finding;
}

Finding memory_finding(const HostFacts& facts) {
  std::string text = size_text(facts.memory);
  if (facts.limits.memory && *facts.limits.memory < facts.memory) {
    text += fmt::format(", of which the container may take {}", size_text(*facts.limits.memory));
  }
  return {.subject = "memory", .text = text};
}

// Docker gives 64 MiB. Source of the sizes: NCCL's troubleshooting, "Shared memory".
Finding shared_memory_finding(const HostFacts& facts, int gpus) {
  constexpr int64_t kEnough = 1024 * kMiB;
  const char* const users = "where NCCL and Open MPI keep buffers";
  if (!facts.shared) {
    return {.subject = "/dev/shm",
            .state = State::kMissing,
            .text = fmt::format("not there, {}", users),
            .remedy = "mount -t tmpfs tmpfs /dev/shm"};
  }
  Finding finding = {.subject = "/dev/shm", .text = size_text(*facts.shared)};
  if (gpus < 2 || *facts.shared >= kEnough) return finding;
  finding.state = State::kNote;
  finding.text += fmt::format(", {}: little for {} GPUs", users, gpus);
  finding.remedy = "docker run --shm-size=1g";
  return finding;
}

Finding locked_memory_finding(const HostFacts& facts) {
  if (!facts.locked_memory) return {.subject = "locked memory", .text = "unlimited"};
  return {.subject = "locked memory",
          .state = State::kNote,
          .text = fmt::format("{}, and NCCL over InfiniBand locks more",
                              size_text(*facts.locked_memory)),
          .remedy = "ulimit -l unlimited, or docker run --ulimit memlock=-1"};
}

Finding open_files_finding(const HostFacts& facts) {
  constexpr int64_t kEnough = 256;  // each rank has a connection to each other one
  if (!facts.open_files) return {.subject = "open files", .text = "unlimited"};
  Finding finding = {.subject = "open files", .text = std::to_string(*facts.open_files)};
  if (*facts.open_files >= kEnough) return finding;
  finding.state = State::kNote;
  finding.text += ": little for many ranks and loader threads";
  finding.remedy = "ulimit -n 1024";
  return finding;
}

Finding mpi_finding(const HostFacts& facts) {
  if (facts.mpi.empty()) {
    return {.subject = "MPI",
            .state = State::kNote,
            .text = "this build has none; torchrun, srun and ranks started by hand need none",
            .remedy = "scripts/setup.sh, then cmake --preset release -DLOCKSTEP_MPI=ON, and build"};
  }
  if (facts.has_mpirun) return {.subject = "MPI", .text = facts.mpi};
  return {.subject = "MPI",
          .state = State::kMissing,
          .text = fmt::format("{}, but no mpirun on PATH starts ranks", facts.mpi),
          .remedy = "scripts/setup.sh, or torchrun --no-python --nproc_per_node=2"};
}

}  // namespace

std::vector<Finding> host_findings(const HostFacts& facts, int gpus) {
  std::vector<Finding> findings = {cpu_finding(facts.cpu, gpus > 0),
                                   cores_finding(facts),
                                   memory_finding(facts),
                                   shared_memory_finding(facts, gpus)};
  if (gpus > 1) findings.push_back(locked_memory_finding(facts));
  findings.push_back(open_files_finding(facts));
  findings.push_back(mpi_finding(facts));
  return findings;
}

}  // namespace lockstep::trainers
