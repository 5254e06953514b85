#include "trainers/loop/make_optimizer.h"

#include <utility>

namespace lockstep::trainers {
namespace {

std::vector<nn::ParameterGroup> groups_of(const OptimizerConfig& config,
                                          std::vector<nn::NamedParameter> parameters) {
  if (!config.bias_decay) {
    return nn::without_bias_decay(std::move(parameters), config.weight_decay);
  }
  return {{.parameters = std::move(parameters), .weight_decay = config.weight_decay}};
}

}  // namespace

std::vector<nn::StateEntry> buffers_of(const nn::Module& model) {
  std::vector<nn::StateEntry> buffers = model.state();
  std::erase_if(buffers, [](const nn::StateEntry& entry) {
    return entry.is_parameter || entry.tensor.dtype() != Dtype::kF32;
  });
  return buffers;
}

std::unique_ptr<nn::Optimizer> make_optimizer(const OptimizerConfig& config,
                                              std::vector<nn::NamedParameter> parameters,
                                              std::vector<nn::StateEntry> buffers) {
  std::vector<nn::ParameterGroup> groups = groups_of(config, std::move(parameters));
  std::unique_ptr<nn::Optimizer> optimizer;
  if (config.kind == OptimizerKind::kSgd) {
    const kernels::SgdParams params = {.momentum = static_cast<float>(config.momentum),
                                       .nesterov = config.nesterov};
    optimizer = std::make_unique<nn::Sgd>(std::move(groups), params, config.larc);
  } else {
    const kernels::AdamParams params = {.decoupled = config.kind == OptimizerKind::kAdamW};
    optimizer = std::make_unique<nn::Adam>(std::move(groups), params);
  }
  optimizer->set_lr(config.lr);
  if (config.lookahead) {
    optimizer = std::make_unique<nn::Lookahead>(std::move(optimizer), *config.lookahead);
  }
  if (config.ema == 0) return optimizer;
  return std::make_unique<nn::Ema>(std::move(optimizer), std::move(buffers), config.ema);
}

}  // namespace lockstep::trainers
