// The types in which a network's parameters are held, as --opt-level asks for them.
#pragma once

#include <vector>

#include "nn/parameter_copies.h"
#include "trainers/config/precision_config.h"

namespace lockstep::trainers {

class StoredWeights {
 public:
  // Adds the copies that the network reads. Call refresh() before it does.
  StoredWeights(const PrecisionConfig& config, std::vector<nn::NamedParameter> parameters);

  // After others than the optimizer wrote the parameters.
  void refresh(Stream& stream) const;
  // After the optimizer did: it writes copies itself.
  void round(Stream& stream) const;

 private:
  Dtype dtype_;
  std::vector<nn::NamedParameter> parameters_;
  std::vector<nn::NamedParameter> without_master_;
};

}  // namespace lockstep::trainers
