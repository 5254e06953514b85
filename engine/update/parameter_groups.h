// Groups the parameters by learning rate and weight decay, as the flags ask for it.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/settings/optimizer_options.h"
#include "nn/optimizer.h"

namespace lockstep {

// Returns a group for each rule of --param-groups, after a group of the parameters without a rule.
// Errors: UsageError for a rule that no parameter matches.
std::vector<nn::ParameterGroup> parameter_groups(const OptimizerOptions& config,
                                                 const std::vector<nn::NamedParameter>& parameters);

struct TrainedAtFirst {
  Var parameter;
  int64_t steps = 0;  // counted from epoch 0; later ones leave it as it is
};
// The parameters whose rule says epochs=N.
std::vector<TrainedAtFirst> trained_at_first(const OptimizerOptions& config,
                                             const std::vector<nn::NamedParameter>& parameters,
                                             int64_t steps_per_epoch);

}  // namespace lockstep
