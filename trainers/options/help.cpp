#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/words.h"
#include "engine/update/schedule_rows.h"
#include "trainers/options/parser.h"
#include "trainers/options/presets.h"

namespace lockstep::trainers {
namespace {

constexpr size_t kIndent = 40;
constexpr size_t kColumns = 100;

std::string value_shown(const Flag& flag, Program program) {
  if (flag.kind == FlagKind::kBool) return "";
  if (!flag.takes.empty()) return fmt::format(" {}", flag.takes);
  if (flag.kind == FlagKind::kChoice) return fmt::format(" {}", flag.choices.of(program));
  return flag.kind == FlagKind::kInt ? " N" : " X";
}

std::string meaning_shown(const Flag& flag, Program program) {
  if (!flag.means.empty()) return fmt::format("same as {}", flag.means);
  const std::string_view initial = flag.initial.of(program);
  if (flag.kind == FlagKind::kBool || initial.empty()) return std::string(flag.help);
  return fmt::format("{} [{}]", flag.help, initial);
}

// "-b, --b, --batch-size N": one-letter names first; the brief page leaves out other long names.
std::string names_shown(const Flag& flag, Program program, bool all) {
  std::string letters;
  std::string words = name_shown(flag, program);
  for (const std::string_view alias : split_words(flag.aliases, ' ')) {
    if (alias.size() <= 3) letters += fmt::format("{}, ", alias);
    if (alias.size() > 3 && all) words += fmt::format(", {}", alias);
  }
  return letters + words + value_shown(flag, program);
}

// Long lists of choices continue on the next lines.
std::string wrapped(std::string_view line) {
  if (line.size() <= kColumns) return std::string(line);
  const size_t end = line.rfind('|', kColumns - 1) + 1;
  const std::string rest = fmt::format("{:8}{}", "", line.substr(end));
  return fmt::format("{}\n{}", line.substr(0, end), wrapped(rest));
}

std::string page(Program program, bool all) {
  std::string text = fmt::format("usage: [mpirun -np N] {} [DIR] [flags]\n", name_of(program));
  for (int g = 0; g < kFlagGroups; ++g) {
    const auto group = static_cast<FlagGroup>(g);
    text += fmt::format("{}:\n", name_of(group));
    for (const Flag& flag : flag_table()) {
      if (flag.group != group || !flag.is_for(program) || !(all || flag.brief)) continue;
      const std::string names = wrapped("  " + names_shown(flag, program, all));
      const size_t last_line = names.size() - (names.rfind('\n') + 1);
      const std::string meaning = meaning_shown(flag, program);
      const size_t indent = meaning.size() + kIndent <= kColumns ? kIndent : 6;
      const bool fits = last_line + 2 <= indent;
      text += names + (fits ? "" : "\n") + std::string(fits ? indent - last_line : indent, ' ');
      text += meaning + '\n';
    }
  }
  return text;
}

std::string examples(Program program) {
  std::string text;
  for (const auto& [dataset, defaults] : data_defaults(program)) {
    text += fmt::format("Defaults on {}: {}\n", dataset, fmt::join(defaults, " "));
  }
  return text +
         fmt::format(
             "Examples:\n"
             "  {0}\n"
             "  scripts/run -np 2 {0} ~/data --dataset {1} --epochs 5 -b 128\n"
             "  scripts/run -np 8 {0} --global-batch-size 512 --shards 8 --bn-groups 8 -o runs/a\n",
             name_of(program),
             program == Program::kTrainConvnet ? "mnist" : "cifar10");
}

}  // namespace

std::string name_shown(const Flag& flag, Program program) {
  const bool is_on = flag.kind == FlagKind::kBool && flag.initial.of(program) == "true";
  return fmt::format("--{}{}", is_on ? "no-" : "", flag.name);
}

std::string help_text(Program program) {
  return page(program, false) + examples(program);
}

std::string help_all_text(Program program) {
  std::string schedules = "Learning-rate schedules:\n";
  for (const ScheduleRow& row : schedule_rows()) {
    schedules += fmt::format("  {:<12}{}\n", row.name, row.meaning);
  }
  return page(program, true) + schedules +
         "Long flags take _ for -. Switches take True or False, or --no- before their name.\n"
         "LOCKSTEP_<FLAG> sets a flag too. Command line, variable, --config, --preset: the first "
         "one wins.\n"
         "Exit codes: 0 done, 2 usage, 3 data, 4 checkpoint, 5 environment, 6 diverged,\n"
         "  43 stopped by a signal and saved, 75 a rank died or hangs, 1 a bug.\n" +
         spelling_help(program) + examples(program);
}

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
