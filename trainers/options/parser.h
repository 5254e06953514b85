// CLI11 set up from the flag table: what was typed, checked, and the pages about flags.
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

// `arguments`: without the program's name. In long flags _ stands for -; "--flag True" is
// "--flag=True"; of several values of a flag the last one counts. `variable`, if not empty, is the
// environment variable that the arguments come from, and errors name it.
// Errors: UsageError for an unknown flag, a missing value, a value that the flag does not take.
ParsedArguments parse_arguments(Program program,
                                std::vector<std::string> arguments,
                                std::string_view variable = {});

// Errors: UsageError, naming `source` ("--lr" or "LOCKSTEP_LR"), where the flag cannot have it.
void check_flag_value(const Flag& flag,
                      Program program,
                      std::string_view source,
                      std::string_view text);

std::string help_text(Program program);
std::string help_all_text(Program program);  // every flag

// A script for `shell`, "bash", "zsh" or "fish", that completes flags and their values.
std::string completion_text(Program program, std::string_view shell);
std::string man_text(Program program);  // in roff

// A flag as all these pages have it: " N", " DIR", " auto|cpu", or nothing after a switch; and what
// it does, with its default.
std::string value_shown(const Flag& flag, Program program);
std::string meaning_shown(const Flag& flag, Program program);

}  // namespace lockstep::trainers
