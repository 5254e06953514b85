#include "engine/observe/layer_names.h"

namespace lockstep {

std::string layer_of_parameter(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? name : name.substr(0, dot);
}

LayerNames::LayerNames(const std::vector<nn::NamedParameter>& parameters) {
  for (const nn::NamedParameter& parameter : parameters) {
    parameters_[parameter.var.identity()] = parameter.name;
    const std::string layer = layer_of_parameter(parameter.name);
    if (layers_.empty() || layers_.back() != layer) layers_.push_back(layer);
  }
}

std::string LayerNames::parameter(const Var& var) const {
  const auto found = parameters_.find(var.identity());
  return found == parameters_.end() ? "" : found->second;
}

std::string LayerNames::layer_of(const TapeOp& op) const {
  for (const Var& input : op.inputs) {
    const std::string name = parameter(input);
    if (!name.empty()) return layer_of_parameter(name);
  }
  return "";
}

}  // namespace lockstep
