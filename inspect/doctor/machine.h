// Everything that `lockstep doctor` reports about a machine.
#pragma once

#include <string>

#include "inspect/doctor/host_facts.h"
#include "trainers/machine/cuda_facts.h"

namespace lockstep::trainers {

struct Machine {
  CudaFacts cuda = {};
  HostFacts host = {};

  // Whether --device auto chooses a GPU.
  bool trains_on_gpu() const { return !cuda.obstacle; }
  // Whether the device that --device auto chooses works.
  bool can_train() const;
  // One for each GPU; without a GPU, two that share the cores.
  int suggested_ranks() const;
};

Machine read_machine();

// The page: what the machine has, what Lockstep uses of it, and whether training can start.
std::string describe(const Machine& machine);

}  // namespace lockstep::trainers
