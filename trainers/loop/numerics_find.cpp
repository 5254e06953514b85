#include "trainers/loop/numerics_find.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "comm/gather.h"

namespace lockstep::trainers {
namespace {

using Json = nlohmann::ordered_json;

NumericsFind find_of(const Json& json) {
  return {.step = json.at("step"),
          .micro_step = json.at("micro_step"),
          .event = json.at("event"),
          .phase = json.at("phase"),
          .op = json.at("op"),
          .layer = json.at("layer"),
          .after = json.at("after"),
          .tensor = json.at("tensor"),
          .type = json.at("type"),
          .count = json.at("count"),
          .shards = json.at("shards"),
          .images = json.at("images")};
}

void add(std::vector<int64_t>& to, const std::vector<int64_t>& from) {
  to.insert(to.end(), from.begin(), from.end());
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
  const Json json = {{"step", find.step},
                     {"micro_step", find.micro_step},
                     {"event", find.event},
                     {"phase", find.phase},
                     {"op", find.op},
                     {"layer", find.layer},
                     {"after", find.after},
                     {"tensor", find.tensor},
                     {"type", find.type},
                     {"count", find.count},
                     {"shards", find.shards},
                     {"images", find.images}};
  return json.dump();
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

}  // namespace lockstep::trainers
