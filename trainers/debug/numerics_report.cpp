#include "trainers/debug/numerics_report.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/first_few.h"
#include "core/words.h"

namespace lockstep::trainers {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const NumericsFind& find) {
  Json json;
  NumericsFind::visit_fields(find,
                             [&](const char* name, const auto& field) { json[name] = field; });
  return json;
}

// "images 3, 17 and 30 more"; "image 3" for one.
std::string listed(std::string_view noun, std::span<const int64_t> numbers) {
  return fmt::format("{}{} {}", noun, numbers.size() == 1 ? "" : "s", first_few(numbers));
}

std::string where(const NumericsReport& report, const NumericsFind& find) {
  std::string text = fmt::format("step {}", find.step);
  if (find.micro_step > 0) text += fmt::format(", micro-step {}", find.micro_step);
  text += fmt::format(", {}, {} of {}",
                      listed("rank", report.owners()),
                      listed("shard", find.shards),
                      report.shards);
  return find.images.empty() ? text : text + ", " + listed("image", find.images);
}

std::string history(std::span<const ScaleChange> scales) {
  constexpr size_t kLast = 3;
  std::string text;
  if (scales.size() > kLast) {
    scales = scales.last(kLast);
    text = "..., ";
  }
  for (const ScaleChange& change : scales) {
    text += fmt::format(
        "{:g} after step {}{}, ", change.scale, change.step, change.skipped ? " (skipped)" : "");
  }
  text.resize(text.size() - 2);
  return text;
}

}  // namespace

std::string describe(const NumericsFind& find) {
  if (find.phase == "weights") return fmt::format("{} before the step", find.tensor);
  if (find.phase == "input") return "the input images";
  const std::string place = find.layer.empty() ? fmt::format("{} after {}", find.op, find.after)
                                               : fmt::format("{} ({})", find.layer, find.op);
  return fmt::format("{}, {}: the {}", place, find.phase, find.tensor);
}

std::string to_json(const NumericsFind& find) {
  return json_of(find).dump();
}

std::vector<std::string> lines(const NumericsReport& report) {
  std::vector<std::string> lines = {
      fmt::format("lockstep: numerics: {} at step {}", report.what, report.step)};
  if (report.first) {
    lines.push_back(fmt::format("  first: {}: {} of {} infinite or NaN",
                                describe(*report.first),
                                counted(report.first->count, "element"),
                                report.first->type));
    lines.push_back("  where: " + where(report, *report.first));
  } else {
    lines.emplace_back("  first: a sum over shards or ranks; each shard's tensors are finite");
  }
  if (!report.scales.empty()) lines.push_back("  scale: " + history(report.scales));
  return lines;
}

std::string to_json(const NumericsReport& report) {
  Json json = {{"schema_version", 1},
               {"trouble", report.trouble == Trouble::kLoss ? "loss" : "skips"},
               {"what", report.what},
               {"step", report.step}};
  json["scales"] = Json::array();
  for (const ScaleChange& change : report.scales) {
    json["scales"].push_back(
        {{"step", change.step}, {"scale", change.scale}, {"skipped", change.skipped}});
  }
  json["first"] = report.first ? json_of(*report.first) : Json();
  if (report.first) json["first"]["ranks"] = report.owners();
  return json.dump(2) + "\n";
}

}  // namespace lockstep::trainers
