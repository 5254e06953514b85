#include "trainers/loop/stored_weights.h"

#include <utility>

namespace lockstep::trainers {

StoredWeights::StoredWeights(const PrecisionConfig& config,
                             std::vector<nn::NamedParameter> parameters)
    : dtype_(config.dtype), parameters_(std::move(parameters)) {
  if (!config.is_mixed()) return;
  nn::add_copies(parameters_, dtype_);
  if (config.master_weights) return;
  for (const nn::NamedParameter& parameter : parameters_) {
    if (!parameter.of_norm || !config.keep_batchnorm_fp32) without_master_.push_back(parameter);
  }
}

void StoredWeights::refresh(Stream& stream) const {
  nn::refresh_copies(stream, parameters_);
  round(stream);
}

void StoredWeights::round(Stream& stream) const {
  nn::round_values(stream, without_master_, dtype_);
}

}  // namespace lockstep::trainers
