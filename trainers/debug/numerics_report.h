// Reports where the first infinity or NaN of a run appeared.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/communicator.h"

namespace lockstep::trainers {

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
};

// "layer1.0.conv1 (conv2d), backward: the gradient of its input".
std::string describe(const NumericsFind& find);
std::string to_json(const NumericsFind& find);  // one object

// Returns the earliest find over all ranks, with the shards and images of all ranks that found it;
// nothing where no rank found anything. A collective call.
std::optional<NumericsFind> earliest(Communicator& ranks, const std::optional<NumericsFind>& mine);

enum class Trouble : uint8_t {
  kLoss,  // it is not finite
  kSkips  // too many skipped steps in a row
};
std::string_view name_of(Trouble trouble);  // "loss", "skips"

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

// The report as lines for people; long lists are cut.
std::vector<std::string> lines(const NumericsReport& report);
// numerics.json: indented, ends in a newline.
std::string to_json(const NumericsReport& report);

}  // namespace lockstep::trainers
