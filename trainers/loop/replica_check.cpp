#include "trainers/loop/replica_check.h"

#include <set>
#include <string>

#include <fmt/core.h>

#include "core/error.h"

namespace lockstep::trainers {

ReplicaCheck::ReplicaCheck(const nn::Module& model, const nn::Optimizer& optimizer) {
  for (const nn::NamedParameter& parameter : model.named_parameters()) {
    tensors_.push_back({parameter.name, parameter.var.value()});
  }
  std::set<std::string> own;  // of each rank: averages of what batch norm counts there
  for (const nn::StateEntry& entry : model.state()) {
    if (!entry.is_parameter) own.insert(entry.name + ".ema");
  }
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

}  // namespace lockstep::trainers
