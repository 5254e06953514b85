#include "engine/update/make_optimizer.h"

#include <utility>

#include "core/dtype.h"
#include "engine/update/parameter_groups.h"

namespace lockstep {

std::vector<nn::StateEntry> buffers_of(const nn::Module& model) {
  std::vector<nn::StateEntry> buffers = model.state();
  std::erase_if(buffers, [](const nn::StateEntry& entry) {
    return entry.is_parameter || entry.tensor.dtype() != Dtype::kF32;
  });
  return buffers;
}

std::unique_ptr<nn::Optimizer> make_optimizer(const OptimizerOptions& config,
                                              const std::vector<nn::NamedParameter>& parameters,
                                              std::vector<nn::StateEntry> buffers) {
  std::vector<nn::ParameterGroup> groups = parameter_groups(config, parameters);
  std::unique_ptr<nn::Optimizer> optimizer;
  if (config.kind == OptimizerKind::kSgd) {
    const kernels::SgdParams params = {.momentum = static_cast<float>(config.momentum),
                                       .nesterov = config.nesterov};
    optimizer = std::make_unique<nn::Sgd>(std::move(groups), params, config.larc);
  } else if (config.kind == OptimizerKind::kMuon) {
    const nn::MuonParams params = {
        .momentum = config.momentum, .nesterov = config.nesterov, .products = config.muon_dtype};
    optimizer = std::make_unique<nn::Muon>(std::move(groups), params);
  } else if (config.kind == OptimizerKind::kLamb) {
    optimizer = std::make_unique<nn::Lamb>(std::move(groups));
  } else {
    const kernels::AdamParams params = {.decoupled = config.kind == OptimizerKind::kAdamW};
    optimizer = std::make_unique<nn::Adam>(std::move(groups), params);
  }
  optimizer->set_lr(config.lr);
  if (config.lookahead) {
    const bool takes_buffers = config.lookahead->variant == nn::LookaheadVariant::kAirbench;
    optimizer = std::make_unique<nn::Lookahead>(
        std::move(optimizer), *config.lookahead, takes_buffers ? buffers : decltype(buffers)());
  }
  if (config.ema == 0) return optimizer;
  return std::make_unique<nn::Ema>(std::move(optimizer), std::move(buffers), config.ema);
}

}  // namespace lockstep
