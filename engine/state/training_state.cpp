#include "engine/state/training_state.h"

#include <charconv>
#include <cmath>
#include <string_view>

#include <fmt/core.h>

#include "core/error.h"
#include "core/words.h"

namespace lockstep {
namespace {

using Texts = std::map<std::string, std::string>;

constexpr std::string_view kModel = "model/", kOptimizer = "optimizer/", kSetting = "setting/";

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  throw CheckpointError(fmt::format("{} is no state of a training", file),
                        why,
                        "a file of Trainer::save_state; load() reads weights alone");
}

// The values of a state's metadata.
class Reader {
 public:
  Reader(const Texts& texts, const std::string& file) : texts_(texts), file_(file) {}

  bool has(const char* key) const { return texts_.contains(key); }
  const std::string& text(const char* key) const {
    const auto found = texts_.find(key);
    if (found == texts_.end()) refuse(file_, fmt::format("its metadata has no '{}'", key));
    return found->second;
  }
  int64_t count(const char* key) const {
    const std::string& value = text(key);
    int64_t number = -1;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    constexpr int64_t kMost = int64_t{1} << 53;
    if (error != std::errc{} || end != value.data() + value.size() || number < 0 ||
        number > kMost) {
      refuse(file_, fmt::format("'{}' is '{}'", key, printable(value)));
    }
    return number;
  }
  double number(const char* key) const {
    const auto value = parse_float(text(key));
    if (!value) refuse(file_, fmt::format("'{}' is '{}'", key, printable(text(key))));
    return *value;
  }

 private:
  const Texts& texts_;
  const std::string& file_;
};

}  // namespace

Texts to_texts(const TrainingPosition& position) {
  Texts texts = {{"steps", std::to_string(position.steps)},
                 {"applied", std::to_string(position.applied)},
                 {"epoch", std::to_string(position.epoch)}};
  if (const auto& schedule = position.schedule) {
    texts["schedule.factor"] = fmt::format("{}", schedule->factor);
    texts["schedule.bad_epochs"] = std::to_string(schedule->plateau.bad_epochs);
    texts["schedule.metric"] = schedule->metric;
    if (std::isfinite(schedule->plateau.best)) {
      texts["schedule.best"] = fmt::format("{}", schedule->plateau.best);
    }
  }
  if (const auto& scale = position.loss_scale) {
    texts["scale"] = fmt::format("{}", scale->scale);
    texts["scale.growth_tracker"] = std::to_string(scale->growth_tracker);
    texts["scale.consecutive_skips"] = std::to_string(scale->consecutive_skips);
    texts["scale.applied"] = std::to_string(scale->applied);
    texts["scale.skipped"] = std::to_string(scale->skipped);
  }
  return texts;
}

TrainingPosition position_of(const Texts& texts, const std::string& name) {
  const Reader read(texts, name);
  TrainingPosition position;
  position.steps = read.count("steps");
  position.applied = read.count("applied");
  position.epoch = read.count("epoch");
  if (position.applied > position.steps) refuse(name, "more steps are applied than taken");
  if (read.has("schedule.factor")) {
    ScheduleState& schedule = position.schedule.emplace();
    schedule.factor = read.number("schedule.factor");
    schedule.plateau.bad_epochs = read.count("schedule.bad_epochs");
    schedule.metric = read.text("schedule.metric");
    if (read.has("schedule.best")) schedule.plateau.best = read.number("schedule.best");
  }
  if (read.has("scale")) {
    const kernels::LossScaleRule rule;
    const int64_t tracker = read.count("scale.growth_tracker");
    const int64_t skips = read.count("scale.consecutive_skips");
    const auto scale = static_cast<float>(read.number("scale"));
    if (!(scale > 0) || tracker >= rule.growth_interval || skips >= kMaxSkips) {
      refuse(name, "its loss scale is out of range");
    }
    position.loss_scale = kernels::LossScaleState{.scale = scale,
                                                  .growth_tracker = static_cast<int32_t>(tracker),
                                                  .consecutive_skips = static_cast<int32_t>(skips),
                                                  .applied = read.count("scale.applied"),
                                                  .skipped = read.count("scale.skipped")};
  }
  return position;
}

Safetensors to_file(const TrainingState& state) {
  Safetensors file{.tensors = {}, .metadata = to_texts(state.position)};
  for (const auto& [name, tensor] : state.model) file.tensors[std::string(kModel) + name] = tensor;
  for (const auto& [name, tensor] : state.optimizer) {
    file.tensors[std::string(kOptimizer) + name] = tensor;
  }
  for (const auto& [name, text] : state.settings) {
    file.metadata[std::string(kSetting) + name] = text;
  }
  return file;
}

TrainingState training_state_of(const Safetensors& file, const std::string& name) {
  TrainingState state{
      .model = {}, .optimizer = {}, .position = position_of(file.metadata, name), .settings = {}};
  for (const auto& [key, tensor] : file.tensors) {
    if (key.starts_with(kModel)) {
      state.model[key.substr(kModel.size())] = tensor;
    } else if (key.starts_with(kOptimizer)) {
      state.optimizer[key.substr(kOptimizer.size())] = tensor;
    } else {
      refuse(name, fmt::format("it has a tensor '{}'", printable(key)));
    }
  }
  for (const auto& [key, text] : file.metadata) {
    if (key.starts_with(kSetting)) state.settings[key.substr(kSetting.size())] = text;
  }
  return state;
}

}  // namespace lockstep
