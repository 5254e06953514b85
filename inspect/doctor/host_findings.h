// Reports on the machine apart from its GPUs.
#pragma once

#include <vector>

#include "inspect/doctor/host_facts.h"
#include "trainers/machine/finding.h"

namespace lockstep::trainers {

// Returns the findings on processor, cores, memory, and what ranks need from the system. `gpus`: 0
// for training on the CPU. NCCL between several GPUs needs more of /dev/shm and of locked memory.
std::vector<Finding> host_findings(const HostFacts& facts, int gpus);

}  // namespace lockstep::trainers
