// Finds where the first infinity or NaN of a training appeared, over all ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/communicator.h"

namespace lockstep {

// The first tensor of a step that is not finite.
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

  // Calls visit(name, field) for each field, to write it or to read it.
  static void visit_fields(auto& find, auto&& visit) {
    visit("step", find.step);
    visit("micro_step", find.micro_step);
    visit("event", find.event);
    visit("phase", find.phase);
    visit("op", find.op);
    visit("layer", find.layer);
    visit("after", find.after);
    visit("tensor", find.tensor);
    visit("type", find.type);
    visit("count", find.count);
    visit("shards", find.shards);
    visit("images", find.images);
  }
};

// Returns the earliest find over all ranks, with the shards and images of all ranks that found it;
// nothing where no rank found anything. A collective call.
std::optional<NumericsFind> earliest(Communicator& ranks, const std::optional<NumericsFind>& mine);

enum class Trouble : uint8_t {
  kLoss,  // it is not finite
  kSkips  // too many skipped steps in a row
};

// The loss scale after a change.
struct ScaleChange {
  int64_t step = 0;
  double scale = 1;
  bool skipped = false;
};

struct NumericsReport {
  Trouble trouble = Trouble::kLoss;
  std::string what{};                 // "the loss is nan"
  int64_t step = 0;                   // where that was seen, from 1
  std::vector<ScaleChange> scales{};  // the latest changes, oldest first; none without loss scaling
  std::optional<NumericsFind> first{};  // absent where it was not looked for or not found
  int64_t shards = 1;
  int64_t ranks = 1;  // of the run, which owned the shards

  // Ranks of the run that owned the shards of `first`.
  std::vector<int64_t> owners() const;
};

}  // namespace lockstep
