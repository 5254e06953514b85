// Parameters, chosen by name, that learn differently from the rest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

struct ParameterRule {
  std::string pattern;                      // of names, for fits()
  double lr = 1;                            // factor on the run's learning rate
  std::optional<double> weight_decay = {};  // factor on the run's; absent: as without the rule
  bool by_sgd = false;                      // where others are Muon's
  std::optional<int64_t> epochs = {};       // trained in so many, from epoch 0; absent: in all
};

// Whether `name` is the pattern, in which * stands for any characters and ? for one.
bool fits(std::string_view pattern, std::string_view name);

}  // namespace lockstep
