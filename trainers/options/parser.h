// Parses arguments and prints the pages about flags, by CLI11 set up from the flag table.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainers/options/flag_table.h"

namespace lockstep::trainers {

struct ParsedArguments {
  std::map<std::string_view, std::string> values;  // by the flag's name; switches "true", "false"
  std::vector<std::string> notes;                  // for flags that change nothing here
  std::vector<std::string> foreign;                // the names of those flags
};

// Parses `arguments`, which are without the program's name. In long flags, _ is read as -; "--flag
// True" means "--flag=True"; when a flag is repeated, the last value counts. `variable`, if not
// empty, is the environment variable that the arguments come from, and errors name it.
// Errors: UsageError for an unknown flag, a missing value, or a value that the flag does not take.
ParsedArguments parse_arguments(Program program,
                                std::vector<std::string> arguments,
                                std::string_view variable = {});

// Errors: UsageError, naming `source` ("--lr" or "LOCKSTEP_LR"), for a value that the flag cannot
// have.
void check_flag_value(const Flag& flag,
                      Program program,
                      std::string_view source,
                      std::string_view text);

std::string help_text(Program program);
std::string help_all_text(Program program);  // every flag

std::string bash_completion(Program program);  // a script that completes flags and their values

// "--arch", or "--no-NAME" for a switch that is on by default.
std::string name_shown(const Flag& flag, Program program);

}  // namespace lockstep::trainers
