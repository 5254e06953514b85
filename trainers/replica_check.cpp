#include "trainers/replica_check.h"

#include "core/error.h"

namespace lockstep::trainers {

ReplicaCheck::ReplicaCheck(const nn::Module& model, const nn::Sgd& optimizer) {
  const std::vector<Var> parameters = model.parameters();
  const std::vector<std::string> names = model.parameter_names();
  const std::vector<Tensor>& momentum = optimizer.momentum();
  for (size_t i = 0; i < parameters.size(); ++i) {
    tensors_.push_back({names[i], parameters[i].value()});
  }
  for (size_t i = 0; i < momentum.size(); ++i) {
    tensors_.push_back({names[i] + " (momentum)", momentum[i]});
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
