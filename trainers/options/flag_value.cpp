#include "trainers/options/flag_value.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "trainers/options/spelling.h"

namespace lockstep::trainers {
namespace {

template <class T>
std::optional<T> parse_whole(std::string_view text) {
  T value{};
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

std::string comma_separated(std::string_view words) {
  return fmt::format("{}", fmt::join(split_words(words, '|'), ", "));
}

bool contains(std::string_view words, std::string_view word) {
  const auto all = split_words(words, '|');
  return std::find(all.begin(), all.end(), word) != all.end();
}

[[noreturn]] void refuse(const Flag& flag,
                         Program program,
                         std::string_view source,
                         std::string_view text,
                         std::string_view instead) {
  const std::string_view separator = source.starts_with("-") ? " " : "=";
  throw UsageError(fmt::format("bad value: {}{}{}", source, separator, text),
                   fmt::format("--{} takes {}", flag.name, describe_values(flag, program)),
                   instead.empty() ? fmt::format("{} --help", name_of(program))
                                   : fmt::format("{}{}{}", source, separator, instead));
}

// The allowed number nearest to what was given; for text that is no number, the default.
std::string usable_number(const Flag& flag, Program program, std::optional<double> given) {
  const auto initial = parse_float(flag.initial.of(program));
  const double fallback = initial.value_or(flag.range.min);
  return fmt::format("{}", std::clamp(given.value_or(fallback), flag.range.min, flag.range.max));
}

bool in_range(const Flag& flag, double value) {
  return flag.range.min <= value && value <= flag.range.max;
}

void check_choice(const Flag& flag,
                  Program program,
                  std::string_view source,
                  std::string_view text) {
  if (contains(flag.choices.of(program), text)) return;
  if (contains(flag.later_choices.of(program), text)) {
    throw UsageError(
        fmt::format("--{} {} is not built yet", flag.name, text),
        fmt::format("this version has no {}", flag.not_built),
        fmt::format(
            "--{} {}", flag.name, fmt::join(split_words(flag.choices.of(program), '|'), " or ")));
  }
  refuse(
      flag, program, source, text, nearest_word(text, split_words(flag.choices.of(program), '|')));
}

}  // namespace

std::optional<bool> parse_bool(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (lower == "true" || lower == "1") return true;
  if (lower == "false" || lower == "0") return false;
  return std::nullopt;
}

std::optional<int64_t> parse_int(std::string_view text) {
  return parse_whole<int64_t>(text);
}

std::optional<double> parse_float(std::string_view text) {
  const auto value = parse_whole<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::string describe_values(const Flag& flag, Program program) {
  const auto range = [&] { return fmt::format("from {} to {}", flag.range.min, flag.range.max); };
  switch (flag.kind) {
    case FlagKind::kInt:
      return "a whole number " + range();
    case FlagKind::kFloat:
      return "a number " + range();
    case FlagKind::kString:
      return std::string(flag.metavar);
    case FlagKind::kChoice:
      return "one of " + comma_separated(flag.choices.of(program));
    case FlagKind::kBool:
      break;
  }
  return "True, False, 1, 0 or nothing";
}

void check_flag_value(const Flag& flag,
                      Program program,
                      std::string_view source,
                      std::string_view text) {
  switch (flag.kind) {
    case FlagKind::kBool:
      if (!parse_bool(text)) refuse(flag, program, source, text, "");
      return;
    case FlagKind::kString:
      if (text.empty()) throw missing_value(flag, program, source);
      return;
    case FlagKind::kChoice:
      check_choice(flag, program, source, text);
      return;
    case FlagKind::kInt: {
      const auto value = parse_int(text);
      const auto number = value ? std::optional(static_cast<double>(*value)) : std::nullopt;
      if (number && in_range(flag, *number)) return;
      refuse(flag, program, source, text, usable_number(flag, program, number));
    }
    case FlagKind::kFloat: {
      const auto value = parse_float(text);
      if (value && in_range(flag, *value)) return;
      refuse(flag, program, source, text, usable_number(flag, program, value));
    }
  }
}

UsageError missing_value(const Flag& flag, Program program, std::string_view source) {
  return UsageError(fmt::format("{} needs a value", source),
                    fmt::format("--{} takes {}", flag.name, describe_values(flag, program)),
                    fmt::format("{} --help shows the defaults", name_of(program)));
}

UsageError not_built(const Flag& flag, Program program, std::string_view source) {
  return UsageError(
      fmt::format("{} is not built yet", source),
      fmt::format("this version has no {}", flag.not_built),
      fmt::format("leave {} out; {} --help lists what works", source, name_of(program)));
}

}  // namespace lockstep::trainers
