#include "trainers/options/parser.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"
#include "core/words.h"
#include "trainers/options/presets.h"

namespace lockstep::trainers {

bool is_allowed(const Flag& flag, double number) {
  const auto [min, max] = flag.range;
  return min <= number && number <= max && !(min <= 0 && is_tiny(number));
}

std::string allowed_numbers(const Flag& flag, double number) {
  const auto [min, max] = flag.range;
  if (min <= 0 && is_tiny(number)) {
    return fmt::format("0, or a number from {:.1e} to {}", kSmallestNumber, max);
  }
  return fmt::format(
      "a {}number from {} to {}", flag.kind == FlagKind::kInt ? "whole " : "", min, max);
}

namespace {

bool is_number(const Flag& flag) {
  return flag.kind == FlagKind::kInt || flag.kind == FlagKind::kFloat;
}

// "a whole number from 1 to 1000000", where `text` is not allowed.
std::string allowed_values(const Flag& flag, Program program, std::string_view text) {
  if (is_number(flag)) return allowed_numbers(flag, parse_float(text).value_or(0));
  if (flag.kind == FlagKind::kBool) return "True, False, 1, 0 or nothing";
  if (flag.kind == FlagKind::kString) return std::string(flag.takes);
  return fmt::format("one of {}", fmt::join(split_words(flag.choices.of(program), '|'), ", "));
}

std::optional<double> number_of(const Flag& flag, std::string_view text) {
  if (flag.kind == FlagKind::kFloat) return parse_float(text);
  const std::optional<int64_t> value = parse_int(text);
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

UsageError missing_value(const Flag& flag, Program program, std::string_view source) {
  if (flag.name == "pretrained") {
    return UsageError(fmt::format("{} needs a value", source),
                      "weights are read from a file: nothing is downloaded",
                      "--pretrained FILE; docs/evaluation.md makes one from torchvision's weights");
  }
  return UsageError(fmt::format("{} needs a value", source),
                    fmt::format("--{} takes {}", flag.name, allowed_values(flag, program, "")),
                    fmt::format("{} --help shows the defaults", name_of(program)));
}

// Returns nothing where `text` is allowed, else the nearest allowed value, or "" where none is
// near.
std::optional<std::string> correction(const Flag& flag, Program program, std::string_view text) {
  if (flag.kind == FlagKind::kBool) {
    return parse_bool(text) ? std::nullopt : std::optional<std::string>("");
  }
  if (flag.kind == FlagKind::kChoice) {
    const std::vector<std::string_view> choices = split_words(flag.choices.of(program), '|');
    if (std::ranges::find(choices, text) != choices.end()) return std::nullopt;
    return std::string(nearest_word(text, choices));
  }
  if (!is_number(flag)) return std::nullopt;
  const auto [min, max] = flag.range;
  const std::optional<double> number = number_of(flag, text);
  if (number && min <= 0 && is_tiny(*number)) return fmt::format("{:.1e}", kSmallestNumber);
  // Whole numbers near 2^53 are exact only as such.
  const bool is_beyond =
      flag.kind == FlagKind::kInt && parse_int(text).value_or(0) > static_cast<int64_t>(max);
  if (number && is_allowed(flag, *number) && !is_beyond) return std::nullopt;
  const double initial = parse_float(flag.initial.of(program)).value_or(min);
  return fmt::format("{}", std::clamp(number.value_or(initial), min, max));
}

// Returns the other program where it accepts a choice that this one does not, else `program`.
Program other_program_with(const Flag& flag, Program program, std::string_view text) {
  const bool is_convnet = program == Program::kTrainConvnet;
  const Program other = is_convnet ? Program::kTrainResnet : Program::kTrainConvnet;
  const bool taken = flag.kind == FlagKind::kChoice && !correction(flag, other, text);
  return taken ? other : program;
}

// "-b" of "-b=64"; long names with - for _.
std::string flag_part(std::string_view argument) {
  std::string name(argument.substr(0, argument.find('=')));
  if (name.starts_with("--")) std::replace(name.begin() + 2, name.end(), '_', '-');
  return name;
}

UsageError unknown_flag(Program program, std::string_view argument) {
  const std::string name = flag_part(argument);
  if (find_flag(name) != nullptr) {
    return UsageError(fmt::format("{} is a flag of train_resnet", name),
                      fmt::format("{} has no use for it", name_of(program)),
                      "leave it out");
  }
  std::vector<std::string> known;
  std::vector<std::string> switches;
  for (const Flag& flag : flag_table()) {
    if (!flag.is_for(program)) continue;
    known.push_back(fmt::format("--{}", flag.name));
    if (flag.kind == FlagKind::kBool) switches.push_back(known.back());
    for (const std::string_view alias : split_words(flag.aliases, ' ')) {
      if (alias.size() > 3) known.emplace_back(alias);
    }
  }
  const auto nearest_of = [](const std::string& word, const std::vector<std::string>& candidates) {
    const std::vector<std::string_view> words(candidates.begin(), candidates.end());
    return std::string(nearest_word(word, words));
  };
  const std::string dashed = name.starts_with("--") ? name : "-" + name;
  const std::string positive = dashed.starts_with("--no-") ? "--" + dashed.substr(5) : "";
  std::string nearest;
  if (find_flag(positive) == nullptr) nearest = nearest_of(positive, switches);
  if (!nearest.empty()) nearest.insert(2, "no-");
  if (nearest.empty()) nearest = nearest_of(dashed, known);
  if (nearest.empty()) nearest = nearest_of(positive, known);
  const std::string_view preset = preset_with(name);
  const std::string advice =
      !preset.empty()   ? fmt::format("--preset {}, which has it, or --help for ours", preset)
      : nearest.empty() ? fmt::format("{} --help", name_of(program))
                        : fmt::format("did you mean {}?", nearest);
  return UsageError(fmt::format("unknown flag {}", without_controls(name)),
                    fmt::format("{} has no such flag", name_of(program)),
                    advice);
}

// Rewrites forms that CLI11 does not know: _ for -, a switch's value as a word of its own,
// shorthands, and the flags of other trainers.
class Normalizer {
 public:
  Normalizer(Program program, std::string_view variable, const std::vector<std::string>& arguments)
      : program_(program), variable_(variable), arguments_(arguments) {}

  std::vector<std::string> run(ParsedArguments& parsed) {
    for (; next_ < arguments_.size() && arguments_[next_] != "--"; ++next_) {
      const std::string& argument = arguments_[next_];
      const std::string name = flag_part(argument);
      const Flag* const negated =
          name.starts_with("--no-") ? find_flag("--" + name.substr(5)) : nullptr;
      if (const Flag* const flag = find_flag(name)) {
        append(*flag, name, false);
      } else if (negated != nullptr && negated->kind == FlagKind::kBool) {
        append(*negated, name, true);
      } else if (const ForeignFlag* const foreign = find_foreign_flag(name)) {
        parsed.notes.push_back(answer(*foreign, name));
        parsed.foreign.emplace_back(foreign->name);
      } else if (const ForeignFlag* const opposite = negated_foreign(name)) {
        parsed.notes.push_back(answer_negated_flag(*opposite));
      } else {
        result_.push_back(name + argument.substr(name.size()));
      }
    }
    result_.insert(
        result_.end(), arguments_.begin() + static_cast<ptrdiff_t>(next_), arguments_.end());
    return std::move(result_);
  }

 private:
  void append(const Flag& flag, const std::string& name, bool negated) {
    if (name == "-e") refuse_epochs();
    const std::optional<std::string> value = explicit_value();
    const std::string_view source = variable_.empty() ? name : variable_;
    if (value && value->empty()) throw missing_value(flag, program_, source);
    if (flag.kind != FlagKind::kBool) {
      result_.push_back(value ? fmt::format("--{}={}", flag.name, *value) : name);
      return;
    }
    const std::string word = value ? *value : bool_word().value_or("true");
    check_flag_value(flag, program_, source, word);
    const bool on = parse_bool(word).value_or(false) != negated;
    if (flag.means.empty()) {
      result_.push_back(fmt::format("--{}={}", flag.name, on));
    } else if (on) {
      result_.emplace_back(flag.means);
    }
  }

  // The other trainer's switch that --no-NAME turns off.
  static const ForeignFlag* negated_foreign(const std::string& name) {
    if (!name.starts_with("--no-")) return nullptr;
    const ForeignFlag* const foreign = find_foreign_flag("--" + name.substr(5));
    return foreign == nullptr || foreign->takes_value ? nullptr : foreign;
  }

  // -e is a number of epochs in two of the tutorials.
  void refuse_epochs() const {
    if (next_ + 1 >= arguments_.size() || !parse_int(arguments_[next_ + 1])) return;
    throw UsageError(
        fmt::format("-e {} gives -e a number", without_controls(arguments_[next_ + 1])),
        "-e evaluates saved weights; only with a tutorial's preset it means --epochs",
        fmt::format("--epochs {}", without_controls(arguments_[next_ + 1])));
  }

  std::string answer(const ForeignFlag& foreign, const std::string& name) {
    std::string value = explicit_value().value_or("");
    if (!foreign.takes_value) {
      const std::string word = value.empty() ? bool_word().value_or("") : value;
      if (parse_bool(word) == false) return answer_negated_flag(foreign);
      value.clear();
    } else if (value.empty() && next_ + 1 < arguments_.size()) {
      value = arguments_[++next_];
    }
    if (foreign.takes_value && value.empty()) {
      throw UsageError(fmt::format("{} needs a value", name),
                       std::string(foreign.reason),
                       std::string(foreign.instead));
    }
    return answer_foreign_flag(foreign, value);
  }

  std::optional<std::string> explicit_value() const {
    const std::string& argument = arguments_[next_];
    const size_t equals = argument.find('=');
    return equals == std::string::npos ? std::nullopt : std::optional(argument.substr(equals + 1));
  }

  // Returns the next argument if it is true or false.
  std::optional<std::string> bool_word() {
    if (next_ + 1 >= arguments_.size() || !parse_bool(arguments_[next_ + 1])) return std::nullopt;
    return arguments_[++next_];
  }

  Program program_;
  std::string_view variable_;
  const std::vector<std::string>& arguments_;
  size_t next_ = 0;
  std::vector<std::string> result_;
};

std::unique_ptr<CLI::App> make_app(Program program) {
  auto app = std::make_unique<CLI::App>();
  app->set_help_flag();
  app->allow_extras();
  for (const Flag& flag : flag_table()) {
    if (!flag.is_for(program) || !flag.means.empty()) continue;
    std::string names = fmt::format("--{}", flag.name);
    for (const auto alias : split_words(flag.aliases, ' ')) names += fmt::format(",{}", alias);
    if (flag.kind == FlagKind::kBool) {
      app->add_flag(names);
    } else {
      app->add_option(flag.name == "data" ? names + ",DIR" : names)->take_last();
    }
  }
  return app;
}

void refuse_two_folders(Program program, const std::vector<std::string>& folders) {
  const auto other = std::ranges::find_if(
      folders, [&](const std::string& folder) { return folder != folders.back(); });
  if (other == folders.end()) return;
  throw UsageError(fmt::format("two data directories: {} and {}",
                               without_controls(*other),
                               without_controls(folders.back())),
                   "only one can be given, as DIR or as --data DIR",
                   fmt::format("{} DIR", name_of(program)));
}

void refuse_leftovers(Program program, std::vector<std::string> leftovers) {
  std::erase(leftovers, "--");
  if (leftovers.empty()) return;
  const auto flag = std::ranges::find_if(
      leftovers, [](const std::string& argument) { return argument.starts_with("-"); });
  if (flag != leftovers.end()) throw unknown_flag(program, *flag);
  throw UsageError(fmt::format("one argument too many: {}", without_controls(leftovers.front())),
                   "only one data directory can be given",
                   fmt::format("{} DIR, or quotes around a name with spaces", name_of(program)));
}

}  // namespace

void check_flag_value(const Flag& flag,
                      Program program,
                      std::string_view source,
                      std::string_view text) {
  const bool is_flag = text.starts_with("--") || find_flag(flag_part(text)) != nullptr;
  if (text.empty() || is_flag) throw missing_value(flag, program, source);
  const std::optional<std::string> instead = correction(flag, program, text);
  if (!instead) return;
  const std::string_view separator = source.starts_with("-") ? " " : "=";
  const Program other = other_program_with(flag, program, text);
  const std::string value = fmt::format("{}{}{}", source, separator, without_controls(text));
  const std::string advice = other != program   ? fmt::format("{} {}", name_of(other), value)
                             : instead->empty() ? fmt::format("{} --help", name_of(program))
                             : is_number(flag)
                                 ? fmt::format("{}{}{}", source, separator, *instead)
                                 : fmt::format("did you mean {}{}{}?", source, separator, *instead);
  throw UsageError(fmt::format("bad value: {}", value),
                   fmt::format("--{} takes {}", flag.name, allowed_values(flag, program, text)),
                   advice);
}

ParsedArguments parse_arguments(Program program,
                                std::vector<std::string> arguments,
                                std::string_view variable) {
  ParsedArguments parsed;
  arguments = Normalizer(program, variable, arguments).run(parsed);
  const std::unique_ptr<CLI::App> app = make_app(program);
  std::ranges::reverse(arguments);  // CLI11 reads from the back
  try {
    app->parse(std::move(arguments));
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string_view what = error.what();
    const std::string name(what.substr(0, what.find(':')));
    throw missing_value(*find_flag(name), program, name);
  } catch (const CLI::ParseError& error) {
    throw UsageError(
        without_controls(error.what()), "", fmt::format("{} --help", name_of(program)));
  }
  // CLI11 finds an option by its name in a function that may not throw, and takes memory in it.
  for (const CLI::Option* const option : std::as_const(*app).get_options()) {
    if (option->count() == 0) continue;
    const std::string name = fmt::format("--{}", option->get_lnames().front());
    const Flag& flag = *find_flag(name);
    const std::string& value = option->results().back();
    if (flag.name == "data") refuse_two_folders(program, option->results());
    check_flag_value(flag, program, variable.empty() ? name : variable, value);
    parsed.values[flag.name] = value;
  }
  refuse_leftovers(program, app->remaining());
  return parsed;
}

}  // namespace lockstep::trainers
