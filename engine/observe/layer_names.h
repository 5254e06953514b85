// Maps an op on the tape to its layer.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "core/autograd.h"
#include "nn/module.h"

namespace lockstep {

class LayerNames {
 public:
  // Requires: the parameters outlive this.
  explicit LayerNames(const std::vector<nn::NamedParameter>& parameters);

  // PyTorch's name of a parameter, "layer1.0.conv1.weight"; empty for other variables.
  std::string parameter(const Var& var) const;
  // The layer of the op's parameters, "layer1.0.conv1"; empty where it has none.
  std::string layer_of(const TapeOp& op) const;
  // The names of the layers, in the order of the parameters, each once.
  const std::vector<std::string>& layers() const { return layers_; }

 private:
  std::unordered_map<const void*, std::string> parameters_;
  std::vector<std::string> layers_;
};

// "layer1.0.conv1.weight" -> "layer1.0.conv1".
std::string layer_of_parameter(const std::string& name);

}  // namespace lockstep
