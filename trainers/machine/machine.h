// All that `lockstep doctor` says of a machine.
#pragma once

#include <string>

#include "trainers/machine/cuda_facts.h"
#include "trainers/machine/host_facts.h"

namespace lockstep::trainers {

struct Machine {
  CudaFacts cuda = {};
  HostFacts host = {};

  // --device auto takes a GPU.
  bool trains_on_gpu() const { return !cuda.obstacle; }
  // The device that --device auto takes works.
  bool can_train() const;
  // One for each GPU; without one, two that share the cores.
  int suggested_ranks() const;
};

Machine read_machine();

// The page: what the machine has, what Lockstep uses of it, and whether training can start.
std::string describe(const Machine& machine);

}  // namespace lockstep::trainers
