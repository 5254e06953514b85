#include "engine/update/weights.h"

namespace lockstep {

StoredWeights::StoredWeights(const PrecisionConfig& config, const nn::Module& model)
    : dtype_(config.dtype), parameters_(model.named_parameters()) {
  if (!config.is_mixed()) return;
  if (!config.master_weights) {
    for (const nn::NamedParameter& parameter : parameters_) {
      if (!parameter.of_norm || !config.keep_batchnorm_fp32) without_master_.push_back(parameter);
    }
  }
  const std::vector<nn::NamedParameter> frozen = model.frozen_parameters();
  parameters_.insert(parameters_.end(), frozen.begin(), frozen.end());
  nn::add_copies(parameters_, dtype_);
}

void StoredWeights::refresh(Stream& stream) const {
  nn::refresh_copies(stream, parameters_);
  round(stream);
}

void StoredWeights::round(Stream& stream) const {
  nn::round_values(stream, without_master_, dtype_);
}

}  // namespace lockstep
