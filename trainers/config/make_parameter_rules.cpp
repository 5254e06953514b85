#include <fmt/core.h>

#include "core/error.h"
#include "core/words.h"
#include "trainers/config/config_from_flags.h"
#include "trainers/options/flag_table.h"

namespace lockstep::trainers {
namespace {

[[noreturn]] void refuse_rule(std::string_view rule, const std::string& why) {
  throw UsageError(fmt::format("bad value: --param-groups '{}'", printable(rule)),
                   why,
                   "--param-groups \"*.bias lr=64 wd=0.015625; 0.bias epochs=3\"");
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words = split_words(text, ' ');
  std::erase(words, "");
  return words;
}

void read_setting(std::string_view rule, std::string_view word, ParameterRule& into) {
  const size_t equals = word.find('=');
  const std::string_view key = word.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? "" : word.substr(equals + 1);
  if (word == "opt=sgd") {
    into.by_sgd = true;
    return;
  }
  const bool is_factor = key == "lr" || key == "wd";
  if (!is_factor && key != "epochs") {
    refuse_rule(rule, "lr=X, wd=X, epochs=N and opt=sgd are what may follow a pattern");
  }
  if (!is_factor) {
    const std::optional<int64_t> epochs = parse_int(value);
    if (!epochs || *epochs < 0 || *epochs > kMaxEpochs) {
      refuse_rule(rule, "epochs takes a whole number from 0");
    }
    into.epochs = epochs;
    return;
  }
  const std::optional<double> factor = parse_float(value);
  if (!factor || *factor < 0) refuse_rule(rule, fmt::format("{} takes a number from 0", key));
  if (key == "lr") {
    into.lr = *factor;
  } else {
    into.weight_decay = factor;
  }
}

}  // namespace

std::vector<ParameterRule> parse_parameter_rules(std::string_view text) {
  std::vector<ParameterRule> rules;
  for (const std::string_view part : split_words(text, ';')) {
    const std::vector<std::string_view> words = words_of(part);
    if (words.empty()) continue;
    ParameterRule rule{.pattern = std::string(words.front())};
    if (words.size() == 1)
      refuse_rule(part, "a pattern without lr=, wd= or epochs= changes nothing");
    for (size_t i = 1; i < words.size(); ++i) read_setting(part, words[i], rule);
    rules.push_back(std::move(rule));
  }
  if (rules.empty()) refuse_rule(text, "it names no parameters");
  return rules;
}

}  // namespace lockstep::trainers
