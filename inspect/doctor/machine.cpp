#include "inspect/doctor/machine.h"

#include <vector>

#include <fmt/core.h>

#include "core/version.h"
#include "inspect/doctor/host_findings.h"
#include "trainers/machine/cuda_findings.h"
#include "trainers/machine/finding.h"

namespace lockstep::trainers {
namespace {

std::string convolutions_of(const Machine& machine) {
  if (!machine.trains_on_gpu()) return fmt::format("oneDNN {}", machine.host.cpu.onednn);
  const LibraryFacts& cudnn = machine.cuda.cudnn;
  return cudnn.problem.empty() ? fmt::format("cuDNN {}", cudnn.version) : "Lockstep's own kernels";
}

std::string exchange_of(const Machine& machine) {
  if (machine.suggested_ranks() == 1) return "none on one rank";
  if (!machine.trains_on_gpu()) return "shared memory; MPI or TCP between hosts";
  const LibraryFacts& nccl = machine.cuda.nccl;
  return nccl.problem.empty() ? fmt::format("NCCL {}", nccl.version)
                              : "CUDA IPC where GPUs reach each other, else the host";
}

std::string ranks_of(const Machine& machine) {
  const int ranks = machine.suggested_ranks();
  return fmt::format("{}, {}: scripts/run -np {} train_resnet",
                     ranks,
                     machine.trains_on_gpu() ? "one per GPU" : "which share the cores",
                     ranks);
}

std::vector<Finding> uses_of(const Machine& machine) {
  if (!machine.can_train()) return {};
  return {{.subject = "device", .text = machine.trains_on_gpu() ? "cuda" : "cpu"},
          {.subject = "convolutions", .text = convolutions_of(machine)},
          {.subject = "gradients", .text = exchange_of(machine)},
          {.subject = "ranks", .text = ranks_of(machine)}};
}

}  // namespace

bool Machine::can_train() const {
  if (!host.cpu.problem.empty()) return false;
  if (!trains_on_gpu()) return host.cpu.can_train();
  const auto loads = [](const LibraryFacts& library) {
    return library.problem.empty() || !library.is_expected;
  };
  return cuda.is_usable() && loads(cuda.cudnn) && loads(cuda.cublaslt);
}

int Machine::suggested_ranks() const {
  constexpr int kOnCpu = 2;
  return trains_on_gpu() ? static_cast<int>(cuda.devices.size()) : kOnCpu;
}

Machine read_machine() {
  return {.cuda = read_cuda(), .host = read_host()};
}

std::string describe(const Machine& machine) {
  std::vector<Finding> has = cuda_findings(machine.cuda);
  for (Finding& finding :
       host_findings(machine.host, static_cast<int>(machine.cuda.devices.size()))) {
    has.push_back(std::move(finding));
  }
  const std::string page = page_of(fmt::format("Lockstep {} on this machine", version()), has);
  if (!machine.can_train()) return page + "training cannot start: see what is broken\n";
  return page + page_of("training uses", uses_of(machine)) + "training can start\n";
}

}  // namespace lockstep::trainers
