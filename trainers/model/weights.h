// Chooses the types in which weights are stored and the optimizer that updates them, as the flags
// ask for it.
#pragma once

#include <memory>
#include <vector>

#include "core/stream.h"
#include "nn/autocast.h"
#include "nn/optimizer.h"
#include "trainers/config/optimizer_config.h"
#include "trainers/config/precision_config.h"

namespace lockstep::trainers {

// Returns the model's buffers that steps change and that can be averaged, so not the count of
// batches.
std::vector<nn::StateEntry> buffers_of(const nn::Module& model);

// Makes the optimizer. With config.ema it is an nn::Ema, of `buffers` too.
std::unique_ptr<nn::Optimizer> make_optimizer(const OptimizerConfig& config,
                                              const std::vector<nn::NamedParameter>& parameters,
                                              std::vector<nn::StateEntry> buffers = {});

// Parameters in the types that --opt-level asks for.
class StoredWeights {
 public:
  // Adds the copies that the network reads. Call refresh() before it does.
  StoredWeights(const PrecisionConfig& config, const nn::Module& model);

  // Call this after code other than the optimizer has written the parameters.
  void refresh(Stream& stream) const;
  // Call this after the optimizer has, which writes copies itself.
  void round(Stream& stream) const;

 private:
  Dtype dtype_;
  std::vector<nn::NamedParameter> parameters_;  // frozen ones last
  std::vector<nn::NamedParameter> without_master_;
};

}  // namespace lockstep::trainers
