#include "nn/conv_stack.h"

#include <string>
#include <utility>

namespace lockstep::nn {

ConvStack::ConvStack(const Init& init, const std::vector<ConvUnit>& units, bool batch_norm) {
  int place = 0;
  for (const ConvUnit& unit : units) {
    Layers layers{.conv = std::make_unique<Conv2d>(init, unit.conv), .norm = {}, .pool = {}};
    register_module(std::to_string(place++), *layers.conv);
    if (batch_norm) {
      layers.norm = std::make_unique<BatchNorm>(init, unit.conv.out_channels, true);
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

}  // namespace lockstep::nn
