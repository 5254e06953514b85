#include "engine/update/replica_check.h"

#include <set>
#include <string>

#include <fmt/core.h>

#include "core/error.h"

namespace lockstep {

ReplicaCheck::ReplicaCheck(const nn::Module& model, const nn::Optimizer& optimizer) {
  for (const nn::StateEntry& entry : model.state()) {
    if (entry.is_parameter) tensors_.push_back({entry.name, entry.tensor});
  }
  std::set<std::string> own;  // of each rank: it follows what batch norm counts there
  for (const nn::StateEntry& entry : optimizer.state_of_buffers()) own.insert(entry.name);
  for (const nn::StateEntry& entry : optimizer.state()) {
    if (!own.contains(entry.name)) tensors_.push_back({entry.name, entry.tensor});
  }
}

void ReplicaCheck::compare(Communicator& ranks, int64_t step) const {
  const auto difference = comm::audit_replicas(ranks, tensors_);
  if (!difference) return;
  throw DivergedError(
      fmt::format(
          "ranks hold different weights after step {}: {}", step, comm::to_string(*difference)),
      "replicas must stay equal bit for bit: memory or a transfer was corrupted, "
      "or a rank computes differently",
      "run again; if the same rank differs again, leave its host out");
}

}  // namespace lockstep
