// The settings that flags ask for.
#pragma once

#include <string_view>
#include <vector>

#include "engine/settings/exchange_config.h"
#include "engine/settings/optimizer_options.h"
#include "engine/settings/precision_config.h"
#include "trainers/config/augmentation_config.h"
#include "trainers/config/run_request.h"
#include "trainers/options/command_line.h"

namespace lockstep::trainers {

// Require checked options. Errors: UsageError for flags that contradict each other or would change
// nothing.
struct OptimizerConfig : OptimizerOptions {
  const OptimizerOptions& options() const { return *this; }

  ScheduleOptions schedule;
};
OptimizerConfig make_optimizer_config(const Options& options);
PrecisionConfig make_precision_config(const Options& options);
AugmentationConfig make_augmentation_config(const Options& options);
ExchangeConfig make_exchange_config(const Options& options);
RunRequest make_run_request(const Options& options);

// Reads --param-groups: "*.bias lr=64 wd=0.5; 0.weight epochs=0" holds two rules. Errors:
// UsageError.
std::vector<ParameterRule> parse_parameter_rules(std::string_view text);

}  // namespace lockstep::trainers
