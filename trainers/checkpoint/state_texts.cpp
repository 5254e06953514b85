#include "trainers/checkpoint/state_texts.h"

#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "engine/update/training_position.h"
#include "trainers/checkpoint/record_ranges.h"
#include "trainers/config/file_json.h"

namespace lockstep::trainers {

using Json = nlohmann::ordered_json;

std::string to_text(const std::optional<ScheduleState>& state) {
  Json json = Json::object();
  if (state) {
    json["factor"] = state->factor;
    if (std::isfinite(state->plateau.best)) json["best"] = state->plateau.best;
    json["bad_epochs"] = state->plateau.bad_epochs;
    json["metric"] = state->metric;
  }
  return json.dump();
}

std::optional<ScheduleState> schedule_state_of(const std::string& text) {
  const auto json = parse_file<FileJson>(text);
  if (json.is_object() && json.empty()) return std::nullopt;
  ScheduleState state{.factor = json.at("factor").get<double>(),
                      .metric = json.value("metric", "")};
  state.plateau.bad_epochs = json.at("bad_epochs").get<uint32_t>();
  if (json.contains("best")) state.plateau.best = json.at("best").get<double>();
  return state;
}

std::string to_text(const EarlyStopping::State& state) {
  Json json{{"worse_epochs", state.worse_epochs}};
  if (std::isfinite(state.best)) json["best"] = state.best;
  return json.dump();
}

EarlyStopping::State early_stopping_state_of(const std::string& text) {
  const auto json = parse_file<FileJson>(text);
  EarlyStopping::State state{.worse_epochs = json.at("worse_epochs").get<uint32_t>()};
  if (json.contains("best")) state.best = json.at("best").get<double>();
  return state;
}

std::string to_text(const kernels::LossScaleState& state) {
  const kernels::LossScaleRule rule;
  return Json{{"scale", state.scale},
              {"growth_factor", rule.growth_factor},
              {"backoff_factor", rule.backoff_factor},
              {"growth_interval", rule.growth_interval},
              {"_growth_tracker", state.growth_tracker},
              {"applied", state.applied},
              {"skipped", state.skipped},
              {"consecutive_skips", state.consecutive_skips}}
      .dump();
}

std::optional<kernels::LossScaleState> loss_scale_state_of(const std::string& text) {
  const auto json = parse_file<FileJson>(text);
  const auto scale = json.at("scale").get<double>();
  if (!(scale > 0 && scale <= std::numeric_limits<float>::max())) return std::nullopt;
  const kernels::LossScaleState state{
      .scale = static_cast<float>(scale),
      .growth_tracker = json.at("_growth_tracker").get<int32_t>(),
      .consecutive_skips = json.at("consecutive_skips").get<int32_t>(),
      .applied = json.at("applied").get<int64_t>(),
      .skipped = json.at("skipped").get<int64_t>()};
  const auto lies = [](int64_t count, int64_t end) { return count >= 0 && count < end; };
  const bool counts = lies(state.growth_tracker, kernels::LossScaleRule().growth_interval) &&
                      lies(state.consecutive_skips, kMaxSkips) &&
                      lies(state.applied, kMaxCounted) && lies(state.skipped, kMaxCounted);
  return counts ? std::optional(state) : std::nullopt;
}

}  // namespace lockstep::trainers
