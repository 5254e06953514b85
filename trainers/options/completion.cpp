#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/words.h"
#include "trainers/options/parser.h"

namespace lockstep::trainers {
namespace {

// Returns "--arch", "-a", "--model"; "--no-NAME" for a switch that is on by default.
std::vector<std::string> spellings(const Flag& flag, Program program) {
  std::vector<std::string> names = {name_shown(flag, program)};
  for (const std::string_view alias : split_words(flag.aliases, ' ')) names.emplace_back(alias);
  return names;
}

// Returns what bash runs to complete the value of a flag; "" for a switch.
std::string completes_value(const Flag& flag, Program program) {
  if (flag.kind == FlagKind::kBool) return "";
  if (flag.kind == FlagKind::kChoice) {
    return fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$word\"))",
                       fmt::join(split_words(flag.choices.of(program), '|'), " "));
  }
  const bool is_file = flag.takes.find("FILE") != flag.takes.npos || flag.takes.starts_with("PATH");
  if (flag.takes != "DIR" && !is_file) return "COMPREPLY=()";
  return fmt::format("mapfile -t COMPREPLY < <(compgen -{} -- \"$word\")", is_file ? 'f' : 'd');
}

}  // namespace

std::string bash_completion(Program program) {
  std::vector<std::string> all;
  std::string cases;
  for (const Flag& flag : flag_table()) {
    if (!flag.is_for(program)) continue;
    const std::vector<std::string> names = spellings(flag, program);
    all.insert(all.end(), names.begin(), names.end());
    if (const std::string completes = completes_value(flag, program); !completes.empty()) {
      cases += fmt::format("    {}) {}; return ;;\n", fmt::join(names, "|"), completes);
    }
  }
  return fmt::format(R"(# bash completion for {0}: source this file, or install it
_{0}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
  COMPREPLY=()
  # Bash makes a word of its own of the = in --flag=value.
  if [[ $word == = ]]; then
    word=
  elif [[ $before == = ]]; then
    before=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
  case $before in
{1}  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W '{2}' -- "$word"))
  else
    mapfile -t COMPREPLY < <(compgen -d -- "$word")
  fi
}}
complete -o filenames -F _{0} {0}
)",
                     name_of(program),
                     cases,
                     fmt::join(all, " "));
}

}  // namespace lockstep::trainers
