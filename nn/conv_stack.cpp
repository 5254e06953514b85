#include "nn/conv_stack.h"

#include <array>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace lockstep::nn {

ConvStack::ConvStack(const Init& init, const std::vector<ConvUnit>& units, bool batch_norm) {
  int place = 0;
  for (const ConvUnit& unit : units) {
    Layers layers{.conv = std::make_unique<Conv2d>(init, unit.conv), .norm = {}, .pool = {}};
    register_module(std::to_string(place++), *layers.conv);
    if (batch_norm) {
      layers.norm = std::make_unique<BatchNorm>(
          init, unit.conv.out_channels, BatchNormOptions{.activation = Activation::kRelu});
      register_module(std::to_string(place++), *layers.norm);
    }
    ++place;  // ReLU
    if (unit.pool > 0) {
      layers.pool = std::make_unique<MaxPool2d>(unit.pool, 2, 0);
      ++place;
    }
    layers_.push_back(std::move(layers));
  }
}

Var ConvStack::forward(const Var& x) {
  Var y = x;
  for (const Layers& layers : layers_) {
    y = layers.conv->forward(y);
    y = layers.norm ? layers.norm->forward(y) : relu(y);
    if (layers.pool) y = layers.pool->forward(y);
  }
  return y;
}

DenseHead::DenseHead(const Init& init, const DenseHeadOptions& options)
    : dropout_first_(options.dropout_first) {
  layers_.push_back(std::make_unique<Linear>(init, options.in_image, options.hidden));
  layers_.push_back(std::make_unique<Linear>(init, options.hidden, options.hidden));
  layers_.push_back(std::make_unique<Linear>(init, options.hidden, options.classes));
  using Names = std::array<const char*, 3>;
  const Names names = dropout_first_ ? Names{"1", "4", "6"} : Names{"0", "3", "6"};
  for (size_t i = 0; i < layers_.size(); ++i) register_module(names[i], *layers_[i]);
  for (const uint32_t layer : {0U, 1U}) {
    dropouts_.push_back(std::make_unique<Dropout>(options.dropout, layer));
    register_module(fmt::format("dropout{}", layer), *dropouts_.back());  // has no state
  }
}

Var DenseHead::forward(const Var& x) {
  Var y = x;
  auto dropout = dropouts_.begin();
  for (size_t i = 0; i < layers_.size(); ++i) {
    const bool drops = dropout_first_ ? i < 2 : i > 0;
    if (drops) y = (*dropout++)->forward(y);
    y = layers_[i]->forward(y);
    if (i + 1 < layers_.size()) y = relu(y);
  }
  return y;
}

}  // namespace lockstep::nn
