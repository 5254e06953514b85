#include "trainers/options/command_line.h"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "core/check.h"
#include "trainers/options/argument_rewriting.h"
#include "trainers/options/data_defaults.h"
#include "trainers/options/flag_value.h"
#include "trainers/options/presets.h"

namespace lockstep::trainers {
namespace {

using Values = std::map<std::string_view, std::string>;

std::string names_for_parser(const Flag& flag) {
  std::string names = fmt::format("--{}", flag.name);
  for (std::string_view alias : split_words(flag.aliases, ' ')) names += fmt::format(",{}", alias);
  if (flag.name == "data") names += ",DIR";
  return names;
}

void refuse_leftovers(Program program, std::vector<std::string> leftovers) {
  std::erase(leftovers, "--");
  if (leftovers.empty()) return;
  const std::string& first = leftovers.front();
  if (first.starts_with("-")) throw unknown_flag(program, first);
  throw UsageError(fmt::format("one argument too many: {}", first),
                   "only one data directory can be given",
                   fmt::format("{} DIR, or quotes around a name with spaces", name_of(program)));
}

Values parse(Program program, std::vector<std::string> arguments) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::vector<std::pair<const Flag*, CLI::Option*>> parsed;
  for (const Flag& flag : flag_table()) {
    if (!flag.of(program)) continue;
    const std::string names = names_for_parser(flag);
    CLI::Option* option =
        flag.kind == FlagKind::kBool ? app.add_flag(names) : app.add_option(names)->take_last();
    parsed.emplace_back(&flag, option);
  }
  std::reverse(arguments.begin(), arguments.end());  // CLI11 reads from the back
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what(), "", fmt::format("{} --help", name_of(program)));
  }
  refuse_leftovers(program, app.remaining());
  Values values;
  for (const auto& [flag, option] : parsed) {
    if (option->count() == 0) continue;
    const std::string& value = option->results().back();
    check_flag_value(*flag, program, fmt::format("--{}", flag->name), value);
    values[flag->name] = value;
  }
  return values;
}

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

// Shorthands first, so that LOCKSTEP_DATASET wins over LOCKSTEP_DUMMY.
Values environment_values(Program program, const Environment& environment) {
  std::vector<std::string> arguments;
  for (const bool shorthands : {true, false}) {
    for (const Flag& flag : flag_table()) {
      if (!flag.of(program) || only_prints(flag) || flag.means.empty() == shorthands) continue;
      const std::string variable = environment_name(flag);
      const char* value = environment(variable.c_str());
      if (value == nullptr || *value == '\0') continue;
      const std::string argument = fmt::format("--{}={}", flag.name, value);
      const RewrittenArguments one = rewrite_arguments(program, {&argument, 1}, variable);
      arguments.insert(arguments.end(), one.arguments.begin(), one.arguments.end());
    }
  }
  return parse(program, arguments);
}

template <class T>
T checked(const std::optional<T>& value, std::string_view name) {
  LS_CHECK(value.has_value(), "[options] --{} is of another kind", name);
  return *value;
}

Values values_of(Program program, std::span<const std::string_view> typed) {
  const std::vector<std::string> arguments(typed.begin(), typed.end());
  return parse(program, rewrite_arguments(program, arguments).arguments);
}

}  // namespace

std::string_view name_of(Origin origin) {
  switch (origin) {
    case Origin::kDefault:
      return "default";
    case Origin::kDataSet:
      return "data set";
    case Origin::kPreset:
      return "preset";
    case Origin::kWeightsFile:
      return "weights file";
    case Origin::kEnvironment:
      return "environment";
    case Origin::kCommandLine:
      break;
  }
  return "command line";
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
  Values defaults;
  for (const Flag& flag : flag_table()) {
    const std::string_view value = flag.initial.of(program);
    if (flag.of(program) && flag.built() && !value.empty()) defaults[flag.name] = value;
  }
  RewrittenArguments rewritten = rewrite_arguments(program, arguments);
  options.notes = std::move(rewritten.notes);
  const Values command_line = parse(program, std::move(rewritten.arguments));
  const Values from_environment = environment_values(program, environment);

  apply(defaults, Origin::kDefault);
  apply(from_environment, Origin::kEnvironment);
  apply(command_line, Origin::kCommandLine);
  if (const Setting* preset = options.find("preset")) {
    apply(values_of(program, preset_named(preset->value).arguments), Origin::kPreset);
  }
  const Setting* dir = options.find("data");
  const std::string dataset =
      dataset_name(program, options.text("dataset"), dir == nullptr ? std::string() : dir->value);
  for (const DataDefaults& defaults_here : data_defaults(program)) {
    if (defaults_here.dataset != dataset) continue;
    apply(values_of(program, defaults_here.arguments), Origin::kDataSet);
  }
  if (options.find("version") != nullptr && options.boolean("version")) {
    options.request = Request::kVersion;
  }
  return options;
}

}  // namespace lockstep::trainers
