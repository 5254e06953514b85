#include "trainers/options/command_line.h"

#include <fmt/core.h>

#include "core/check.h"
#include "core/words.h"
#include "trainers/options/parser.h"
#include "trainers/options/presets.h"
#include "trainers/options/tutorial_spelling.h"

namespace lockstep::trainers {
namespace {

using Values = std::map<std::string_view, std::string>;

// A help page is shown whatever else is wrong with the line.
std::optional<Request> help_request(std::span<const std::string> arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    if (argument == "-h" || argument == "--help") return Request::kHelp;
    if (argument == "--help-all" || argument == "--help_all") return Request::kHelpAll;
  }
  return std::nullopt;
}

bool only_prints(const Flag& flag) {
  const std::string_view name = flag.name;
  return name.starts_with("help") || name == "version" || name == "check-build" ||
         name == "verbose";
}

// Not by CLI11, which ignores a variable's bad value without a word from version 2.4 on.
// Shorthands first, so that LOCKSTEP_DATASET overrides LOCKSTEP_DUMMY.
Values environment_values(Program program, const Environment& environment) {
  Values values;
  for (const bool shorthands : {true, false}) {
    for (const Flag& flag : flag_table()) {
      if (!flag.of(program) || only_prints(flag) || flag.means.empty() == shorthands) continue;
      const std::string variable = environment_name(flag);
      const char* value = environment(variable.c_str());
      if (value == nullptr || *value == '\0') continue;
      const std::string argument = fmt::format("--{}={}", flag.name, value);
      for (const auto& [name, text] : parse_arguments(program, {argument}, variable).values) {
        values[name] = text;
      }
    }
  }
  return values;
}

template <class T>
T checked(const std::optional<T>& value, std::string_view name) {
  LS_CHECK(value.has_value(), "[options] --{} is of another kind", name);
  return *value;
}

Values values_of(Program program, Arguments typed) {
  return parse_arguments(program, {typed.begin(), typed.end()}).values;
}

}  // namespace

std::string_view name_of(Origin origin) {
  constexpr std::string_view kNames[] = {
      "default", "data set", "preset", "weights file", "environment", "command line"};
  return kNames[static_cast<size_t>(origin)];
}

const Setting* Options::find(std::string_view name) const {
  LS_CHECK(find_flag(fmt::format("--{}", name)) != nullptr, "[options] no flag is called {}", name);
  const auto found = settings_.find(name);
  return found == settings_.end() ? nullptr : &found->second;
}

bool Options::given(std::string_view name) const {
  const Setting* setting = find(name);
  return setting != nullptr && setting->origin >= Origin::kEnvironment;
}

const std::string& Options::text(std::string_view name) const {
  const Setting* setting = find(name);
  LS_CHECK(setting != nullptr, "[options] --{} has no value", name);
  return setting->value;
}

int64_t Options::integer(std::string_view name) const {
  return checked(parse_int(text(name)), name);
}

double Options::number(std::string_view name) const {
  return checked(parse_float(text(name)), name);
}

bool Options::boolean(std::string_view name) const {
  return checked(parse_bool(text(name)), name);
}

std::optional<int64_t> Options::maybe_integer(std::string_view name) const {
  return find(name) == nullptr ? std::nullopt : std::optional(integer(name));
}

std::vector<ResolvedFlag> Options::resolved() const {
  std::vector<ResolvedFlag> flags;
  for (const Flag& flag : flag_table()) {
    const auto found = settings_.find(flag.name);
    if (found == settings_.end()) continue;
    const auto& [value, origin] = found->second;
    flags.push_back({std::string(flag.name), value, std::string(name_of(origin))});
  }
  return flags;
}

void Options::take(std::string_view name, const std::string& value) {
  if (given(name)) return;
  settings_.insert_or_assign(std::string(name), Setting{value, Origin::kWeightsFile});
}

Options read_options(Program program,
                     std::span<const std::string> arguments,
                     const Environment& environment) {
  Options options;
  options.program = program;
  if (const auto request = help_request(arguments)) {
    options.request = *request;
    return options;
  }
  const auto apply = [&](const Values& values, Origin origin) {
    for (const auto& [name, value] : values) {
      const Setting* set = options.find(name);
      if (set != nullptr && set->origin > origin) continue;
      options.settings_.insert_or_assign(std::string(name), Setting{value, origin});
    }
  };
  const std::vector<std::string> words(arguments.begin(), arguments.end());
  const char* variable = environment("LOCKSTEP_PRESET");
  const std::string preset_name = value_in(words, "--preset", variable == nullptr ? "" : variable);
  ParsedArguments typed = parse_arguments(program, respelled(preset_name, words));
  options.notes = std::move(typed.notes);
  options.foreign = std::move(typed.foreign);
  Values defaults;
  for (const Flag& flag : flag_table()) {
    const std::string_view value = flag.initial.of(program);
    if (flag.of(program) && !value.empty()) defaults[flag.name] = value;
  }
  apply(defaults, Origin::kDefault);
  apply(environment_values(program, environment), Origin::kEnvironment);
  apply(typed.values, Origin::kCommandLine);
  if (const Setting* preset = options.find("preset")) {
    apply(values_of(program, preset_named(preset->value)), Origin::kPreset);
  }
  const Setting* dir = options.find("data");
  const std::string dataset =
      dataset_name(program, options.text("dataset"), dir == nullptr ? std::string() : dir->value);
  for (const auto& [name, arguments_of_set] : data_defaults(program)) {
    if (name == dataset) apply(values_of(program, arguments_of_set), Origin::kDataSet);
  }
  const Setting* version = options.find("version");
  if (version != nullptr && options.boolean("version")) options.request = Request::kVersion;
  return options;
}

}  // namespace lockstep::trainers
