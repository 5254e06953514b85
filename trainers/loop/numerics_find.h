// The first tensor of a step that is not finite.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/communicator.h"

namespace lockstep::trainers {

struct NumericsFind {
  int64_t step = 0;  // from 1
  int64_t micro_step = 0;
  int64_t event = 0;     // place among the step's tensors, the same on every rank
  std::string phase{};   // "weights", "input", "forward", "backward"
  std::string op{};      // "conv2d"; empty for weights and input
  std::string layer{};   // "layer1.0.conv1"; empty for an op without parameters
  std::string after{};   // the layer before such an op
  std::string tensor{};  // "output", "gradient of its input", "gradient of layer1.0.conv1.weight"
  std::string type{};    // "f16 (8,64,28,28)"
  int64_t count = 0;     // of elements that are infinite or NaN
  std::vector<int64_t> shards{};  // of all shards of a micro-step
  std::vector<int64_t> images{};  // numbers in the training set
};

// "layer1.0.conv1 (conv2d), backward: the gradient of its input".
std::string describe(const NumericsFind& find);
std::string to_json(const NumericsFind& find);  // one object

// The earliest over ranks, with the shards and images of all ranks that found it; nothing where
// none found anything. A collective call.
std::optional<NumericsFind> earliest(Communicator& ranks, const std::optional<NumericsFind>& mine);

}  // namespace lockstep::trainers
