// Makes the optimizer that the flags ask for.
#pragma once

#include <memory>
#include <vector>

#include "engine/settings/optimizer_options.h"
#include "nn/optimizer.h"

namespace lockstep {

// Returns the model's buffers that steps change and that can be averaged, so not the count of
// batches.
std::vector<nn::StateEntry> buffers_of(const nn::Module& model);

// Makes the optimizer. With config.ema it is an nn::Ema, of `buffers` too.
std::unique_ptr<nn::Optimizer> make_optimizer(const OptimizerOptions& config,
                                              const std::vector<nn::NamedParameter>& parameters,
                                              std::vector<nn::StateEntry> buffers = {});

}  // namespace lockstep
