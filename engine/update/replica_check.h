// Checks that the ranks still hold the same network.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/replicas.h"
#include "core/communicator.h"
#include "nn/module.h"
#include "nn/optimizer.h"

namespace lockstep {

// Shares the memory of parameters and optimizer
// state.
class ReplicaCheck {
 public:
  ReplicaCheck(const nn::Module& model, const nn::Optimizer& optimizer);

  // A collective call. Errors: DivergedError naming rank, tensor and first element that differ.
  void compare(Communicator& ranks, int64_t step) const;

 private:
  std::vector<comm::NamedTensor> tensors_;
};

}  // namespace lockstep
