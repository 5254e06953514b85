#include "nn/dense_head.h"

#include <array>

#include <fmt/core.h>

namespace lockstep::nn {

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
