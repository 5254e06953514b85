#include "trainers/loop/numerics_report.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace lockstep::trainers {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kListed = 12;

// "images 3, 17 and 30 more"; "image 3" for one.
std::string listed(std::string_view noun, std::span<const int64_t> numbers) {
  const size_t shown = std::min(numbers.size(), kListed);
  std::string text = fmt::format(
      "{}{} {}", noun, numbers.size() == 1 ? "" : "s", fmt::join(numbers.first(shown), ", "));
  if (shown < numbers.size()) text += fmt::format(" and {} more", numbers.size() - shown);
  return text;
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

std::string_view name_of(Trouble trouble) {
  return trouble == Trouble::kLoss ? "loss" : "skips";
}

std::vector<int64_t> NumericsReport::owners() const {
  std::vector<int64_t> owners;
  for (const int64_t shard : first ? first->shards : std::vector<int64_t>()) {
    const int64_t rank = ((shard + 1) * ranks - 1) / shards;  // owns [floor(r S/W), ...)
    if (owners.empty() || owners.back() != rank) owners.push_back(rank);
  }
  return owners;
}

std::vector<std::string> lines(const NumericsReport& report) {
  std::vector<std::string> lines = {
      fmt::format("lockstep: numerics: {} at step {}", report.what, report.step)};
  if (report.first) {
    lines.push_back(fmt::format(
        "  first: {}: {} of {} infinite or NaN",
        describe(*report.first),
        report.first->count == 1 ? "1 element" : fmt::format("{} elements", report.first->count),
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
               {"trouble", name_of(report.trouble)},
               {"what", report.what},
               {"step", report.step}};
  json["scales"] = Json::array();
  for (const ScaleChange& change : report.scales) {
    json["scales"].push_back(
        {{"step", change.step}, {"scale", change.scale}, {"skipped", change.skipped}});
  }
  json["first"] = report.first ? Json::parse(to_json(*report.first)) : Json();
  if (report.first) json["first"]["ranks"] = report.owners();
  return json.dump(2) + "\n";
}

}  // namespace lockstep::trainers
