#include "engine/state/training_state.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <optional>
#include <string_view>

#include <fmt/core.h>

#include "core/error.h"
#include "core/words.h"
#include "engine/state/position_fields.h"

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

  const std::string& text(const std::string& key) const {
    const auto found = texts_.find(key);
    if (found == texts_.end()) refuse(file_, fmt::format("its metadata has no '{}'", key));
    return found->second;
  }
  template <class T>
  void operator()(const std::string& key, T& field) const {
    const std::string& value = text(key);
    bool is_read = true;
    if constexpr (std::same_as<T, std::string>) {
      field = value;
    } else if constexpr (std::integral<T>) {
      constexpr int64_t kMost = std::min(int64_t{1} << 53, int64_t{std::numeric_limits<T>::max()});
      const auto number = parse_int(value);
      is_read = number && *number >= 0 && *number <= kMost;
      if (is_read) field = static_cast<T>(*number);
    } else {
      const auto number = parse_float(value);
      is_read = number && std::abs(*number) <= std::numeric_limits<T>::max();
      if (is_read) field = static_cast<T>(*number);
    }
    if (!is_read) refuse(file_, fmt::format("'{}' is '{}'", key, printable(value)));
  }
  // Reads the state whose fields begin with `prefix`, if there is one.
  template <class T>
  void operator()(const std::string& prefix, std::optional<T>& state) const {
    const auto found = texts_.lower_bound(prefix);
    if (found == texts_.end() || !found->first.starts_with(prefix)) return;
    for_each_field(state.emplace(), [&](const char* name, auto& field, Presence presence = {}) {
      const std::string key = prefix + name;
      if (presence != Presence::kMayBeAbsent || texts_.contains(key)) (*this)(key, field);
    });
  }

 private:
  const Texts& texts_;
  const std::string& file_;
};

template <class T>
void put(const std::string& prefix, const std::optional<T>& state, Texts& texts) {
  if (!state) return;
  for_each_field(*state, [&]<class F>(const char* name, const F& field, Presence presence = {}) {
    if constexpr (std::floating_point<F>) {
      if (presence == Presence::kMayBeAbsent && !std::isfinite(field)) return;
    }
    texts[prefix + name] = fmt::format("{}", field);
  });
}

constexpr const char* kSchedule = "schedule.";
constexpr const char* kLossScale = "loss_scale.";

}  // namespace

Texts to_texts(const TrainingPosition& position) {
  Texts texts = {{"steps", std::to_string(position.steps)},
                 {"applied", std::to_string(position.applied)},
                 {"epoch", std::to_string(position.epoch)}};
  put(kSchedule, position.schedule, texts);
  put(kLossScale, position.loss_scale, texts);
  return texts;
}

TrainingPosition position_of(const Texts& texts, const std::string& name) {
  const Reader read(texts, name);
  TrainingPosition position;
  read("steps", position.steps);
  read("applied", position.applied);
  read("epoch", position.epoch);
  if (position.applied > position.steps) refuse(name, "more steps are applied than taken");
  read(kSchedule, position.schedule);
  read(kLossScale, position.loss_scale);
  if (position.loss_scale && !is_possible(*position.loss_scale)) {
    refuse(name, "its loss scale is out of range");
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
