#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/words.h"
#include "trainers/options/parser.h"

namespace lockstep::trainers {
namespace {

// What follows a flag.
enum class Takes : uint8_t { kNothing, kChoice, kFolder, kFile, kText };

Takes takes(const Flag& flag) {
  if (flag.kind == FlagKind::kBool) return Takes::kNothing;
  if (flag.kind == FlagKind::kChoice) return Takes::kChoice;
  if (flag.takes == "DIR") return Takes::kFolder;
  return flag.takes.find("FILE") != std::string_view::npos || flag.takes.starts_with("PATH")
             ? Takes::kFile
             : Takes::kText;
}

// Returns "--arch", "-a", "--model"; "--no-NAME" for a switch that is on by default.
std::vector<std::string> spellings(const Flag& flag, Program program) {
  std::vector<std::string> names = {name_shown(flag, program)};
  for (const std::string_view alias : split_words(flag.aliases, ' ')) names.emplace_back(alias);
  return names;
}

std::string choices(const Flag& flag, Program program) {
  return fmt::format("{}", fmt::join(split_words(flag.choices.of(program), '|'), " "));
}

std::string meaning(const Flag& flag) {
  return flag.means.empty() ? std::string(flag.help) : fmt::format("same as {}", flag.means);
}

// Text for single quotes in any of the shells. An apostrophe ends the quotation, stands for itself,
// and starts the next.
std::string within_apostrophes(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '\'' ? R"('\'')" : std::string(1, c);
  return escaped;
}

std::string bash_completion(Program program) {
  std::vector<std::string> all;
  std::string cases;
  for (const Flag& flag : flag_table()) {
    if (!flag.is_for(program)) continue;
    const std::vector<std::string> names = spellings(flag, program);
    all.insert(all.end(), names.begin(), names.end());
    const std::string pattern = fmt::format("{}", fmt::join(names, "|"));
    switch (takes(flag)) {
      case Takes::kNothing:
        break;
      case Takes::kChoice:
        cases += fmt::format("    {}) COMPREPLY=($(compgen -W '{}' -- \"$word\")); return ;;\n",
                             pattern,
                             choices(flag, program));
        break;
      case Takes::kFolder:
        cases += fmt::format(
            "    {}) mapfile -t COMPREPLY < <(compgen -d -- \"$word\"); return ;;\n", pattern);
        break;
      case Takes::kFile:
        cases += fmt::format(
            "    {}) mapfile -t COMPREPLY < <(compgen -f -- \"$word\"); return ;;\n", pattern);
        break;
      case Takes::kText:
        cases += fmt::format("    {}) COMPREPLY=(); return ;;\n", pattern);
        break;
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

// zsh reads : and [ ] in a specification.
std::string zsh_text(const std::string& text) {
  std::string escaped;
  for (const char c : within_apostrophes(text)) {
    if (c == ':' || c == '[' || c == ']') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string zsh_argument(const Flag& flag, Program program) {
  switch (takes(flag)) {
    case Takes::kNothing:
      return "";
    case Takes::kChoice:
      return fmt::format(":value:({})", choices(flag, program));
    case Takes::kFolder:
      return ":folder:_files -/";
    case Takes::kFile:
      return ":file:_files";
    case Takes::kText:
      break;
  }
  return ":value: ";
}

std::string zsh_completion(Program program) {
  std::string text = fmt::format("#compdef {}\n_arguments -s \\\n", name_of(program));
  for (const Flag& flag : flag_table()) {
    if (!flag.is_for(program)) continue;
    for (const std::string& name : spellings(flag, program)) {
      const bool has_value = takes(flag) != Takes::kNothing;
      const std::string_view joins = !has_value ? "" : name.starts_with("--") ? "=" : "+";
      text += fmt::format("  '*{}{}[{}]{}' \\\n",
                          name,
                          joins,
                          zsh_text(meaning(flag)),
                          zsh_argument(flag, program));
    }
  }
  return text + "  '*:data directory:_files -/'\n";
}

std::string fish_completion(Program program) {
  std::string text;
  for (const Flag& flag : flag_table()) {
    if (!flag.is_for(program)) continue;
    text += fmt::format("complete -c {}", name_of(program));
    for (const std::string& name : spellings(flag, program)) {
      const bool is_long = name.starts_with("--");
      text += fmt::format(" -{} {}",
                          is_long            ? 'l'
                          : name.size() == 2 ? 's'
                                             : 'o',
                          name.substr(is_long ? 2 : 1));
    }
    switch (takes(flag)) {
      case Takes::kNothing:
        break;
      case Takes::kChoice:
        text += fmt::format(" -x -a '{}'", choices(flag, program));
        break;
      case Takes::kFolder:
        text += " -x -a '(__fish_complete_directories)'";
        break;
      case Takes::kFile:
        text += " -r -F";
        break;
      case Takes::kText:
        text += " -x";
        break;
    }
    text += fmt::format(" -d '{}'\n", within_apostrophes(meaning(flag)));
  }
  return text;
}

}  // namespace

std::string completion_text(Program program, std::string_view shell) {
  if (shell == "bash") return bash_completion(program);
  return shell == "zsh" ? zsh_completion(program) : fish_completion(program);
}

}  // namespace lockstep::trainers
