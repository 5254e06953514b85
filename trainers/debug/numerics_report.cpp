#include "trainers/debug/numerics_report.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "comm/gather.h"
#include "core/first_few.h"
#include "core/words.h"

namespace lockstep::trainers {
namespace {

using Json = nlohmann::ordered_json;

// Calls visit(name, field) for each field, to write it or to read it.
void visit_fields(auto& find, auto&& visit) {
  visit("step", find.step);
  visit("micro_step", find.micro_step);
  visit("event", find.event);
  visit("phase", find.phase);
  visit("op", find.op);
  visit("layer", find.layer);
  visit("after", find.after);
  visit("tensor", find.tensor);
  visit("type", find.type);
  visit("count", find.count);
  visit("shards", find.shards);
  visit("images", find.images);
}

Json json_of(const NumericsFind& find) {
  Json json;
  visit_fields(find, [&](const char* name, const auto& field) { json[name] = field; });
  return json;
}

NumericsFind find_of(const Json& json) {
  NumericsFind find;
  visit_fields(find, [&](const char* name, auto& field) { json.at(name).get_to(field); });
  return find;
}

void add(std::vector<int64_t>& to, const std::vector<int64_t>& from) {
  to.insert(to.end(), from.begin(), from.end());
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

std::optional<NumericsFind> earliest(Communicator& ranks, const std::optional<NumericsFind>& mine) {
  std::optional<NumericsFind> first;
  const auto place = [](const NumericsFind& find) { return std::tuple(find.step, find.event); };
  for (const std::string& text : comm::gather_texts(ranks, mine ? to_json(*mine) : "")) {
    if (text.empty()) continue;
    NumericsFind find = find_of(Json::parse(text));
    if (!first || place(find) < place(*first)) {
      first = std::move(find);
    } else if (place(find) == place(*first)) {
      if (find.phase != "weights") first->count += find.count;  // replicas: the same elements
      add(first->shards, find.shards);
      add(first->images, find.images);
    }
  }
  return first;
}

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
               {"trouble", name_of(report.trouble)},
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
