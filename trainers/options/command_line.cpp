#include "trainers/options/command_line.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/check.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/words.h"
#include "trainers/options/config_file.h"
#include "trainers/options/parser.h"
#include "trainers/options/presets.h"

namespace lockstep::trainers {
namespace {

using Values = std::map<std::string_view, std::string>;

// A help page is shown even if the rest of the command line is wrong.
std::optional<Request> help_request(std::span<const std::string> arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    if (argument == "-h" || argument == "--help") return Request::kHelp;
    if (argument == "--help-all" || argument == "--help_all") return Request::kHelpAll;
  }
  return std::nullopt;
}

// Read here and not by CLI11, which silently ignores a variable's bad value from version 2.4 on.
// Shorthands come first, so that LOCKSTEP_DATASET overrides LOCKSTEP_DUMMY.
Values environment_values(Program program, const Environment& environment) {
  Values values;
  for (const bool shorthands : {true, false}) {
    for (const Flag& flag : flag_table()) {
      if (!flag.is_for(program) || only_prints(flag) || flag.means.empty() == shorthands) continue;
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

Request request_of(const Options& options) {
  const auto asked = [&](std::string_view name) {
    return options.find(name) != nullptr && options.boolean(name);
  };
  if (asked("version")) return Request::kVersion;
  if (options.find("completion") != nullptr) return Request::kCompletion;
  return asked("print-config") ? Request::kPrintConfig : Request::kRun;
}

template <class T>
T checked(const std::optional<T>& value, std::string_view name) {
  LS_CHECK(value.has_value(), "[options] --{} is of another kind", name);
  return *value;
}

// The file that --config or LOCKSTEP_CONFIG names. It is read before the line is parsed, because
// its preset decides how the line is spelled.
std::string config_file(const std::vector<std::string>& words, const Environment& environment) {
  const std::vector<std::string> files = values_in(words, "-c --config");
  if (files.size() > 1) {
    throw UsageError("--config is given twice", "only one is read", "put all lines in one file");
  }
  if (!files.empty()) return files.front();
  const char* const variable = environment("LOCKSTEP_CONFIG");
  return variable == nullptr ? "" : variable;
}

Values config_values(Program program, const std::string& file, std::vector<std::string>& notes) {
  constexpr uint64_t kMost = uint64_t{1} << 20;
  const std::optional<std::string> text = contents_of(file, kMost);
  if (!text) {
    throw UsageError(fmt::format("--config {} cannot be read", printable(file)),
                     "it must be a regular file of at most 1 MiB that this user may read",
                     fmt::format("{} --print-config > FILE makes one", name_of(program)));
  }
  Values values;
  for (const ConfigEntry& entry : parse_config(*text, printable(file))) {
    const std::string where = fmt::format("{}:{}: ", printable(file), entry.line);
    const std::string argument = fmt::format("--{}", entry.key);
    const Flag* const flag = find_flag(argument);
    if (flag != nullptr && (only_prints(*flag) || flag->name == "config")) {
      throw UsageError(where + argument, "it is for the command line alone", "leave it out");
    }
    try {
      ParsedArguments parsed =
          parse_arguments(program, {fmt::format("{}={}", argument, entry.value)});
      for (auto& [name, value] : parsed.values) values[name] = value;
      notes.insert(notes.end(), parsed.notes.begin(), parsed.notes.end());
    } catch (const UsageError& error) {
      throw UsageError(where + error.what(), error.why(), error.hint());
    }
  }
  return values;
}

Values values_of(Program program, Arguments typed) {
  return parse_arguments(program, {typed.begin(), typed.end()}).values;
}

}  // namespace

std::string_view name_of(Origin origin) {
  constexpr std::string_view kNames[] = {"default",
                                         "data set",
                                         "preset",
                                         "weights file",
                                         "config file",
                                         "environment",
                                         "command line"};
  return kNames[static_cast<size_t>(origin)];
}

const Setting* Options::find(std::string_view name) const {
  LS_CHECK(find_flag(fmt::format("--{}", name)) != nullptr, "[options] no flag is called {}", name);
  const auto found = settings_.find(name);
  return found == settings_.end() ? nullptr : &found->second;
}

bool Options::given(std::string_view name) const {
  const Setting* setting = find(name);
  return setting != nullptr && setting->origin >= Origin::kConfigFile;
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
  const std::string file = config_file(words, environment);
  Values configured;
  if (!file.empty()) configured = config_values(program, file, options.notes);
  const char* variable = environment("LOCKSTEP_PRESET");
  const auto preset_of_file = configured.find("preset");
  const std::string preset_name =
      value_in(words,
               "--preset",
               variable != nullptr && *variable != '\0' ? variable
               : preset_of_file != configured.end()     ? preset_of_file->second
                                                        : "");
  ParsedArguments typed = parse_arguments(program, respelled(preset_name, words));
  options.notes.insert(options.notes.end(), typed.notes.begin(), typed.notes.end());
  options.foreign = std::move(typed.foreign);
  Values defaults;
  for (const Flag& flag : flag_table()) {
    const std::string_view value = flag.initial.of(program);
    if (flag.is_for(program) && !value.empty()) defaults[flag.name] = value;
  }
  apply(defaults, Origin::kDefault);
  apply(configured, Origin::kConfigFile);
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
  const Setting* const config = options.find("config");
  if (config != nullptr && config->value != file) {
    throw UsageError(fmt::format("--config {} is not read", printable(config->value)),
                     "its name is part of another argument",
                     fmt::format("--config {}, as words of its own", printable(config->value)));
  }
  options.request = request_of(options);
  return options;
}

}  // namespace lockstep::trainers
