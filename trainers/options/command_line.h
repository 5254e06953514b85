// Merges command line, environment, --config, preset and defaults into one checked value for each
// flag.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainers/options/flag_table.h"

namespace lockstep::trainers {

enum class Origin : uint8_t {  // later ones win
  kDefault,
  kDataSet,  // data_defaults()
  kPreset,
  kWeightsFile,  // trainers/checkpoint/recorded_flags.h
  kConfigFile,   // of --config
  kEnvironment,
  kCommandLine
};
std::string_view name_of(Origin origin);  // as in run.json: "command line"

struct Setting {
  std::string value;
  Origin origin = Origin::kDefault;
};

// A flag's value in this run and where it came from.
struct ResolvedFlag {
  std::string name;
  std::string value;
  std::string origin;
};

// The request of the command line: a run, or a text to print instead.
enum class Request : uint8_t { kRun, kHelp, kHelpAll, kVersion, kPrintConfig, kCompletion };

class Options {
 public:
  // A flag's setting, null where it has neither value nor default. Requires: a name of the table.
  const Setting* find(std::string_view name) const;
  // True when the command line, the environment or the file of --config set it.
  bool given(std::string_view name) const;

  // The checked value. Requires: the flag is of this kind and has a value.
  int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  bool boolean(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  // Nothing where the flag has no value.
  std::optional<int64_t> maybe_integer(std::string_view name) const;

  // Every flag that has a value, in the order of the table, as run.json records it.
  std::vector<ResolvedFlag> resolved() const;

  // Sets a value from a file of weights, unless the flag was given. Requires: a checked value.
  void take(std::string_view name, const std::string& value);

  Program program = Program::kTrainConvnet;
  Request request = Request::kRun;
  std::vector<std::string> notes;    // lines for rank 0 to print before it starts
  std::vector<std::string> foreign;  // flags of other trainers that were accepted: "gpu"

 private:
  friend Options read_options(Program,
                              std::span<const std::string>,
                              const std::function<const char*(const char*)>&);
  std::map<std::string, Setting, std::less<>> settings_;
};

// Gives the value of a variable, or null, as getenv does.
using Environment = std::function<const char*(const char*)>;

// Reads all flags and the file of --config. `arguments`: without the program's name. Every flag but
// the ones that print and stop can also be set as LOCKSTEP_<FLAG>; an empty variable counts as
// absent. When a flag is repeated, the last value counts. Errors: UsageError.
Options read_options(Program program,
                     std::span<const std::string> arguments,
                     const Environment& environment);

}  // namespace lockstep::trainers
