#include <algorithm>
#include <utility>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "core/digest.h"
#include "trainers/options/flag_table.h"
#include "trainers/page/html.h"
#include "trainers/page/report_parts.h"
#include "trainers/page/verdict.h"
#include "trainers/report/number_text.h"

namespace lockstep::trainers {
namespace {

std::string mono(std::string_view text) {
  return fmt::format("<span class=\"mono\">{}</span>", escaped(text));
}

std::string digest_text(const RunRecord& record) {
  return record.digest ? mono(to_hex(*record.digest)) : "–";
}

HtmlTable flags_table(const RunRecord& record, bool chosen) {
  HtmlTable table{.head = {"flag", "value", "from"}, .numbers_from = 9};
  for (const ResolvedFlag& flag : record.flags) {
    if ((flag.origin != name_of(Origin::kDefault)) != chosen) continue;
    table.rows.push_back({mono("--" + flag.name), mono(flag.value), escaped(flag.origin)});
  }
  return table;
}

std::string ranks_table(const RunRecord& record) {
  HtmlTable table{.head = {"rank", "host", "device", "threads", "cores", "most memory"},
                  .numbers_from = 3};
  for (size_t rank = 0; rank < record.ranks.size(); ++rank) {
    const RankRecord& place = record.ranks[rank];
    table.rows.push_back({std::to_string(rank),
                          escaped(place.host),
                          escaped(place.device),
                          std::to_string(place.threads),
                          place.cores > 0 ? std::to_string(place.cores) : "–",
                          place.peak_bytes ? bytes_text(*place.peak_bytes) : "–"});
  }
  return html(table);
}

// Where a run's files are and which rank a process is: no difference of what is trained.
bool matters_to_nobody(const std::string& name) {
  for (const char* const place : {"output-dir", "overwrite", "resume", "csv"}) {
    if (name == place) return true;
  }
  const Flag* const flag = find_flag("--" + name);
  return flag != nullptr && is_ranks_own(*flag);
}

}  // namespace

std::string figures_table(ViewedRuns runs) {
  HtmlTable table{
      .head = {"run", "state", "accuracy", "loss", "steps", "ranks", "images/s", "time", "digest"},
      .numbers_from = 2};
  for (const ViewedRun& run : runs) {
    const Evaluation* const evaluation = evaluation_of(run);
    const auto speed = static_cast<int64_t>(images_per_s_of(run));
    table.rows.push_back({escaped(run.name),
                          escaped(name_of(run.state)),
                          evaluation != nullptr ? fmt::format("{:.2f} %", evaluation->acc1()) : "–",
                          evaluation != nullptr ? fmt::format("{:.4f}", evaluation->loss) : "–",
                          count_text(run.curves.last_step()),
                          std::to_string(run.record.ranks.size()),
                          speed > 0 ? count_text(speed) : "–",
                          seconds_text(seconds_of(run)),
                          digest_text(run.record)});
  }
  return html(table);
}

std::string configuration(const ViewedRun& run) {
  const RunRecord& record = run.record;
  std::string command;
  for (const std::string& word : record.argv) command += (command.empty() ? "" : " ") + word;
  std::string text = fmt::format("<pre class=\"card mono\">{}</pre>\n", escaped(command));
  const HtmlTable chosen = flags_table(record, true);
  if (!chosen.rows.empty()) text += "<br>" + html(chosen);
  const HtmlTable defaults = flags_table(record, false);
  text += fmt::format("<details><summary>{} flags at their defaults</summary>\n{}</details>\n",
                      defaults.rows.size(),
                      html(defaults));
  std::vector<std::pair<std::string, std::string>> versions;
  versions.reserve(record.versions.size());
  for (const auto& [name, version] : record.versions) {
    versions.emplace_back(escaped(name), escaped(version));
  }
  return text + "<h2>Machine</h2>\n" + html_facts(versions) + "<br>" + ranks_table(record);
}

std::string bits_of(const ViewedRun& run) {
  const RunRecord& record = run.record;
  const RunPlan& plan = record.plan;
  const bool alone = record.ranks.size() == 1;
  const std::string resumed = record.resumed ? fmt::format("{}, step {}",
                                                           escaped(record.resumed->file),
                                                           count_text(record.resumed->step))
                                             : "nothing: it began at step 0";
  const std::pair<std::string, std::string> facts[] = {
      {"digest of the weights", digest_text(record)},
      {"digest of the data", mono(record.data_digest)},
      {"images per step", count_text(plan.global_batch)},
      {"micro-steps", std::to_string(plan.micro_steps)},
      {"shards", std::to_string(plan.shards)},
      {"batch-norm groups", std::to_string(plan.bn_groups)},
      {"seeds",
       fmt::format(
           "{} run · {} order · {} weights", plan.seeds.run, plan.seeds.order, plan.seeds.weights)},
      {"all-reduce",
       alone ? std::string("none: one rank")
             : fmt::format("{} over {}, {} on the wire",
                           escaped(plan.algorithm),
                           escaped(plan.transport),
                           escaped(plan.wire))},
      {"same bits on",
       plan.same_bits.empty() ? "this number of ranks only" : same_bits_list(plan) + " ranks"},
      {"may be resumed on", fmt::format("1 to {} ranks", plan.shards)},
      {"resumed from", resumed}};
  return html_facts(facts);
}

std::vector<FlagDifference> flag_differences(ViewedRuns runs) {
  std::vector<FlagDifference> differences;
  for (const Flag& flag : flag_table()) {
    const std::string name(flag.name);
    FlagDifference difference{.name = name};
    for (const ViewedRun& run : runs) difference.values.push_back(flag_of(run.record, name));
    const bool differs = std::ranges::any_of(
        difference.values, [&](const std::string& value) { return value != difference.values[0]; });
    if (differs && !matters_to_nobody(name)) differences.push_back(difference);
  }
  return differences;
}

std::string different_flags(ViewedRuns runs) {
  HtmlTable table{.head = {"flag"}, .numbers_from = 99};
  for (const ViewedRun& run : runs) table.head.push_back(escaped(run.name));
  for (const FlagDifference& difference : flag_differences(runs)) {
    std::vector<std::string> row = {mono("--" + difference.name)};
    for (const std::string& value : difference.values)
      row.push_back(value.empty() ? "–" : mono(value));
    table.rows.push_back(row);
  }
  if (table.rows.empty()) return "<p class=\"note\">No flag differs.</p>\n";
  return html(table);
}

}  // namespace lockstep::trainers
