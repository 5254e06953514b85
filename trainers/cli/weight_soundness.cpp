#include "trainers/cli/weight_soundness.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "engine/state/state_tensors.h"

namespace lockstep::trainers {

std::optional<DivergedError> soundness_error(const nn::Module& model,
                                             const Evaluation& evaluation) {
  std::vector<std::string> unsound;
  for (const auto& [name, tensor] : file_tensors(model.state())) {
    if (tensor.dtype() != Dtype::kF32) continue;  // a counter
    const auto count = std::ranges::count_if(tensor.span<float>(),
                                             [](float value) { return !std::isfinite(value); });
    if (count == 0) continue;
    unsound.push_back(
        fmt::format("{}: {} of {} values are infinite or NaN", name, count, tensor.numel()));
  }
  if (!unsound.empty()) {
    return DivergedError("the weights are not finite: their accuracy means nothing",
                         first_of(unsound),
                         "weights of an earlier step; lockstep inspect FILE counts such values");
  }
  if (std::isfinite(evaluation.loss)) return std::nullopt;
  return DivergedError(fmt::format("the loss of the evaluation is {}", evaluation.loss),
                       "the weights are finite, what they compute from the images is not",
                       "--opt-level O0, or images and normalization as in the training");
}

}  // namespace lockstep::trainers
