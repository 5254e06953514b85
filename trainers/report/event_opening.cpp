#include "trainers/report/event_opening.h"

#include <optional>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "core/words.h"
#include "trainers/options/flag_table.h"

namespace lockstep::trainers {
namespace {

constexpr size_t kLongest = 10'000;  // bytes of a text

bool is_column(const Flag& flag, const ResolvedFlag& setting) {
  if (flag.group == FlagGroup::kOutput || flag.name == "data" || is_ranks_own(flag)) return false;
  return flag.brief || setting.origin != name_of(Origin::kDefault);
}

HParam column(const Flag& flag, const ResolvedFlag& setting) {
  HParam column{.name = setting.name, .value = printable(setting.value, kLongest)};
  if (flag.kind == FlagKind::kBool) {
    column.value = parse_bool(setting.value).value_or(false);
  } else if (const std::optional<double> number = parse_float(setting.value);
             number && (flag.kind == FlagKind::kInt || flag.kind == FlagKind::kFloat)) {
    column.value = *number;
  }
  return column;
}

// Between backquotes Markdown leaves text unchanged, except for the bars of a table.
std::string code(const std::string& text) {
  std::string shown = "`";
  for (const char c : printable(text, kLongest)) {
    if (c == '|') shown += '\\';
    shown += c == '`' ? '\'' : c;
  }
  return shown + "`";
}

}  // namespace

EventOpening event_opening(const RunRecord& record) {
  std::string command;
  for (const std::string& argument : record.argv) {
    command += (command.empty() ? "" : " ") + argument;
  }
  EventOpening opening{.texts = {{"run/command", code(command)}}};
  std::string table = "| flag | value | from |\n|---|---|---|\n";
  for (const ResolvedFlag& setting : record.flags) {
    table += fmt::format("| {} | {} | {} |\n", setting.name, code(setting.value), setting.origin);
    const Flag* const flag = find_flag("--" + setting.name);
    if (flag != nullptr && is_column(*flag, setting)) {
      opening.hparams.push_back(column(*flag, setting));
    }
  }
  opening.texts.push_back({"run/flags", std::move(table)});
  return opening;
}

}  // namespace lockstep::trainers
