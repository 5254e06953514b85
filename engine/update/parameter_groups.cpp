#include "engine/update/parameter_groups.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/ranges.h>

#include "core/error.h"
#include "core/words.h"

namespace lockstep {
namespace {

constexpr size_t kNamed = 3;  // parameters in an error

// Null where none does.
const ParameterRule* first_that_fits(const std::vector<ParameterRule>& rules,
                                     const std::string& name) {
  const auto found = std::ranges::find_if(
      rules, [&](const ParameterRule& rule) { return fits(rule.pattern, name); });
  return found == rules.end() ? nullptr : &*found;
}

[[noreturn]] void refuse_unused(const ParameterRule& rule,
                                const std::vector<nn::NamedParameter>& parameters) {
  std::vector<std::string_view> names;
  names.reserve(parameters.size());
  for (const nn::NamedParameter& parameter : parameters) names.push_back(parameter.name);
  const auto fitting =
      std::ranges::find_if(names, [&](std::string_view name) { return fits(rule.pattern, name); });
  if (fitting != names.end()) {
    throw UsageError(
        fmt::format("the rule for parameters '{}' has no effect", printable(rule.pattern)),
        fmt::format("the first pattern that matches wins, and an earlier one "
                    "matches {} and others",
                    *fitting),
        "put it first, or leave it out");
  }
  std::vector<std::string_view> near;
  for (std::vector<std::string_view> rest = names; near.size() < kNamed;) {
    const std::string_view nearest = nearest_word(rule.pattern, rest);
    if (nearest.empty()) break;
    near.push_back(nearest);
    std::erase(rest, nearest);
  }
  if (near.empty()) near.assign(names.begin(), names.begin() + std::min(kNamed, names.size()));
  throw UsageError(
      fmt::format("no parameter matches the rule '{}'", printable(rule.pattern)),
      fmt::format(
          "the network has {} and {} others", fmt::join(near, ", "), names.size() - near.size()),
      fmt::format("{}, or a pattern such as *.bias", near.front()));
}

// Those of no rule.
std::vector<nn::ParameterGroup> plain_groups(const OptimizerOptions& config,
                                             std::vector<nn::NamedParameter> parameters) {
  if (!config.groups.bias_decay) {
    return nn::without_bias_decay(std::move(parameters), config.base_decay());
  }
  return {{.parameters = std::move(parameters), .weight_decay = config.base_decay()}};
}

}  // namespace

std::vector<nn::ParameterGroup> parameter_groups(
    const OptimizerOptions& config, const std::vector<nn::NamedParameter>& parameters) {
  const std::vector<ParameterRule>& rules = config.groups.rules;
  std::vector<nn::NamedParameter> without_rule;
  std::vector<std::vector<nn::NamedParameter>> by_rule(rules.size());
  for (const nn::NamedParameter& parameter : parameters) {
    const ParameterRule* const rule = first_that_fits(rules, parameter.name);
    auto& members =
        rule == nullptr ? without_rule : by_rule[static_cast<size_t>(rule - rules.data())];
    members.push_back(parameter);
  }
  std::vector<nn::ParameterGroup> groups = plain_groups(config, std::move(without_rule));
  for (size_t i = 0; i < rules.size(); ++i) {
    if (by_rule[i].empty()) refuse_unused(rules[i], parameters);
    std::vector<nn::ParameterGroup> own;
    if (const std::optional<double>& decay = rules[i].weight_decay) {
      own = {{.parameters = std::move(by_rule[i]), .weight_decay = config.base_decay() * *decay}};
    } else {
      own = plain_groups(config, std::move(by_rule[i]));
    }
    for (nn::ParameterGroup& group : own) {
      group.lr_factor = rules[i].lr;
      group.may_orthogonalize = !rules[i].by_sgd;
      if (!group.parameters.empty()) groups.push_back(std::move(group));
    }
  }
  return groups;
}

std::vector<TrainedAtFirst> trained_at_first(const OptimizerOptions& config,
                                             const std::vector<nn::NamedParameter>& parameters,
                                             int64_t steps_per_epoch) {
  std::vector<TrainedAtFirst> found;
  for (const nn::NamedParameter& parameter : parameters) {
    const ParameterRule* const rule = first_that_fits(config.groups.rules, parameter.name);
    if (rule == nullptr || !rule->epochs) continue;
    found.push_back({parameter.var, *rule->epochs * steps_per_epoch});
  }
  return found;
}

}  // namespace lockstep
