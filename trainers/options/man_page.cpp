#include <string>
#include <string_view>

#include <fmt/format.h>

#include "core/version.h"
#include "core/words.h"
#include "trainers/options/parser.h"

namespace lockstep::trainers {
namespace {

// roff takes - for a hyphen, \ for an escape, and . or ' at the beginning of a line for a request.
std::string roff(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
  }
  return escaped.starts_with('.') || escaped.starts_with('\'') ? "\\&" + escaped : escaped;
}

std::string names_of(const Flag& flag, Program program) {
  std::string names = fmt::format("\\fB{}\\fR", roff(name_shown(flag, program)));
  for (const std::string_view alias : split_words(flag.aliases, ' ')) {
    names += fmt::format(", \\fB{}\\fR", roff(alias));
  }
  return names + roff(value_shown(flag, program));
}

}  // namespace

std::string man_text(Program program) {
  const std::string_view name = name_of(program);
  std::string page = fmt::format(
      ".TH {0} 1 \"\" \"Lockstep {1}\" \"Lockstep\"\n"
      ".SH NAME\n{2} \\- train {3} with the same bits on 1, 2, 4 or 8 ranks\n"
      ".SH SYNOPSIS\n[mpirun \\-np N] \\fB{2}\\fR [DIR] [flags]\n"
      ".SH DESCRIPTION\nTrains on the images in DIR, or on built\\-in ones, on the CPU or on GPUs. "
      "Long flags take _ for \\-. Switches take True or False, or \\-\\-no\\- before their name. "
      "LOCKSTEP_<FLAG> sets a flag too; the command line overrides it, and it overrides "
      "\\-\\-config, which overrides \\-\\-preset.\n",
      program == Program::kTrainConvnet ? "TRAIN_CONVNET" : "TRAIN_RESNET",
      version(),
      roff(name),
      program == Program::kTrainConvnet ? "a ConvNet" : "ResNets and other networks");
  for (int g = 0; g < kFlagGroups; ++g) {
    const auto group = static_cast<FlagGroup>(g);
    page += fmt::format(".SH {}\n", name_of(group));
    for (const Flag& flag : flag_table()) {
      if (flag.group != group || !flag.is_for(program)) continue;
      page +=
          fmt::format(".TP\n{}\n{}\n", names_of(flag, program), roff(meaning_shown(flag, program)));
    }
  }
  return page +
         ".SH EXIT STATUS\n0 done, 2 usage, 3 data, 4 checkpoint, 5 environment, 6 diverged, 43 "
         "stopped and saved, 75 a rank was lost or hangs, 1 a bug.\n"
         ".SH SEE ALSO\nlockstep watch follows a run; lockstep \\-\\-help names the commands that "
         "inspect runs.\n";
}

}  // namespace lockstep::trainers
