#include "trainers/options/help_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/cuda/device.h"
#include "core/version.h"
#include "kernels/isa.h"
#include "trainers/options/data_defaults.h"

namespace lockstep::trainers {
namespace {

constexpr size_t kShortIndent = 40;
constexpr size_t kColumns = 100;

std::string value_shown(const Flag& flag, Program program, bool all) {
  if (flag.kind == FlagKind::kBool) return "";
  if (flag.kind != FlagKind::kChoice) return fmt::format(" {}", flag.metavar);
  std::string choices(flag.choices.of(program));
  const std::string_view later = flag.later_choices.of(program);
  if (all && !later.empty()) choices += fmt::format("{}({})", choices.empty() ? "" : "|", later);
  return fmt::format(" {}", choices);
}

// "-b, --b, --batch-size N": one-letter names first; the short page leaves out other long names.
std::string names_shown(const Flag& flag, Program program, bool all) {
  std::string letters;
  std::string others;
  for (std::string_view alias : split_words(flag.aliases, ' ')) {
    if (alias.size() <= 3) {
      letters += fmt::format("{}, ", alias);
    } else if (all) {
      others += fmt::format(", {}", alias);
    }
  }
  const bool on = flag.kind == FlagKind::kBool && flag.initial.of(program) == "true";
  return fmt::format(
      "{}--{}{}{}{}", letters, on ? "no-" : "", flag.name, others, value_shown(flag, program, all));
}

std::string meaning_shown(const Flag& flag, Program program, bool all) {
  const std::string_view initial = flag.initial.of(program);
  std::string text(flag.help);
  if (flag.kind == FlagKind::kBool) {
    if (initial == "true") text = fmt::format("without it: {}", text);
  } else if (!initial.empty()) {
    text += fmt::format(" [{}]", initial);
  }
  if (all) text += fmt::format(" ({}{})", flag.origin, flag.built() ? "" : "; not built yet");
  return text;
}

bool on_short_page(const Flag& flag, Program program) {
  const bool has_values = flag.kind != FlagKind::kChoice || !flag.choices.of(program).empty();
  return flag.page == HelpPage::kShort && flag.built() && has_values;
}

// Long lists of choices go on in the next line.
std::string wrapped(std::string_view line) {
  if (line.size() <= kColumns) return std::string(line);
  const size_t end = line.rfind('|', kColumns - 1) + 1;
  return end == 0 ? std::string(line)
                  : fmt::format("{}\n{:8}{}", line.substr(0, end), "", line.substr(end));
}

// The long page gives each flag two lines; the short one a second line only where one is too short.
std::string page(Program program, bool all) {
  std::string text = fmt::format("usage: [mpirun -np N] {} [DIR] [flags]\n", name_of(program));
  for (int g = 0; g < kFlagGroups; ++g) {
    const auto group = static_cast<FlagGroup>(g);
    text += fmt::format("{}:\n", name_of(group));
    for (const Flag& flag : flag_table()) {
      if (flag.group != group || !flag.of(program) || !(all || on_short_page(flag, program)))
        continue;
      const std::string names = "  " + names_shown(flag, program, all);
      const std::string meaning = meaning_shown(flag, program, all);
      if (all) {
        text += fmt::format("{}\n      {}\n", wrapped(names), meaning);
      } else if (names.size() + 2 <= kShortIndent) {
        text += fmt::format("{:<{}}{}\n", names, kShortIndent, meaning);
      } else {
        text += fmt::format("{}\n{:{}}{}\n", wrapped(names), "", kShortIndent, meaning);
      }
    }
  }
  return text;
}

std::string defaults_of_data(Program program) {
  std::string text;
  for (const DataDefaults& defaults : data_defaults(program)) {
    text += fmt::format("On {}: {}\n", defaults.dataset, fmt::join(defaults.arguments, " "));
  }
  return text;
}

std::string examples(Program program) {
  const std::string_view name = name_of(program);
  return fmt::format(
      "Examples:\n"
      "  {0}\n"
      "  mpirun -np 2 {0} ~/data --dataset {1} --epochs 5 --b 128\n"
      "  mpirun -np 8 {0} --global-batch-size 512 --shards 8 --bn-groups 8 -o runs/a\n",
      name,
      program == Program::kTrainConvnet ? "mnist" : "cifar10");
}

}  // namespace

std::string help_text(Program program) {
  return page(program, false) + defaults_of_data(program) + examples(program);
}

std::string help_all_text(Program program) {
  return page(program, true) +
         "Choices in (...) are not built yet.\n"
         "Long flags take _ for -. Switches take True or False, and --no- in front of their name.\n"
         "LOCKSTEP_<FLAG> sets a flag too: the command line wins over it, it over --preset.\n"
         "Exit codes: 0 done, 2 usage, 3 data, 4 checkpoint, 5 environment, 6 diverged,\n"
         "  43 stopped by a signal and saved, 75 a rank died or hangs, 1 a bug.\n" +
         examples(program);
}

std::string version_text(Program program, bool verbose) {
  std::string text = fmt::format("Lockstep {} {}\n", version(), name_of(program));
  if (!verbose) return text;
#ifdef NDEBUG
  constexpr std::string_view kBuild = "release";
#else
  constexpr std::string_view kBuild = "with assertions";
#endif
  const int gpus = cuda::visible_devices();
  return text + fmt::format("compiler  {}\nbuild     {}\nkernels   {}\ndevices   cpu{}\n",
                            __VERSION__,
                            kBuild,
                            kernels::name_of(kernels::isa_level()),
                            gpus == 0 ? "" : fmt::format(", {} cuda", gpus));
}

}  // namespace lockstep::trainers
