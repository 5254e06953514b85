// The types in which weights are stored.
#pragma once

#include <vector>

#include "core/stream.h"
#include "engine/settings/precision_config.h"
#include "nn/autocast.h"
#include "nn/module.h"

namespace lockstep {

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

}  // namespace lockstep
