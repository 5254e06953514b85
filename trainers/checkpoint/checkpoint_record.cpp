#include "trainers/checkpoint/checkpoint_record.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <optional>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/words.h"
#include "engine/state/position_fields.h"
#include "engine/state/weights_file.h"
#include "trainers/config/file_json.h"
#include "trainers/options/flag_table.h"

namespace lockstep::trainers {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxCounted = int64_t{1} << 53;  // beyond, doubles skip whole numbers
constexpr int64_t kMaxImages = 1'000'000'000'000;  // of a step

constexpr const char* kGradScalerKey = "grad_scaler";
constexpr const char* kEarlyStoppingKey = "early_stopping";
constexpr const char* kScheduleKey = "schedule";
constexpr const char* kNoSchedule = "{}";
constexpr const char* kSeedOrderKey = "seed_order";  // absent: the seed
constexpr const char* kSeedWeightsKey = "seed_weights";
constexpr const char* kEnvironmentKeys[] = {"isa", "lockstep", "onednn", "predivide", "wire"};
// Not known of earlier programs' runs.
constexpr const char* kOnednnIsaKey = "onednn_isa";
constexpr const char* kAlgorithmKey = "algorithm";
// Keys of the environment that only runs on CUDA have, or only files of later programs.
constexpr const char* kLaterKeys[] = {
    "cublaslt", "cudnn", "plan_choices", kOnednnIsaKey, kAlgorithmKey};

using lockstep::for_each_field;
// The fields that every file has.
void for_each_field(Possibly<CheckpointRecord> auto& record, auto&& visit) {
  auto& [run, position, model_digest] = record;
  visit("program", run.program);
  visit("arch", run.arch);
  visit("global_batch", run.global_batch);
  visit("micro_steps", run.micro_steps);
  visit("shards", run.shards);
  visit("bn_groups", run.bn_groups);
  visit("seed", run.seeds.run);
  visit("start_epoch", run.start_epoch);
  visit("data_digest", run.data_digest);
  visit("settings", run.settings);
  visit("steps", position.steps);
  visit("applied_steps", position.applied);
  visit("epoch", position.epoch);
  visit("epoch_sums", position.sums);
  visit("best", position.best);
  visit("best_epoch", position.best_epoch);
  visit("model_digest", model_digest);
}

template <class T>
std::string field_text(const T& field) {
  if constexpr (std::same_as<T, std::string>) {
    return field;
  } else if constexpr (std::integral<T>) {
    return std::to_string(field);
  } else if constexpr (std::same_as<T, Texts>) {
    return Json(field).dump();
  } else {
    Json json = Json::object();
    for_each_field(field,
                   [&]<class Value>(const char* name, const Value& value, Presence presence = {}) {
                     if constexpr (std::floating_point<Value>) {
                       if (presence == Presence::kMayBeAbsent && !std::isfinite(value)) return;
                     }
                     json[name] = value;
                   });
    return json.dump();
  }
}

// Returns false for a number that no run has; throws an exception of Json's for another value.
template <class T>
bool read_value(const FileJson& json, T& value) {
  if constexpr (std::same_as<T, float>) {
    const auto number = json.get<double>();
    value = static_cast<float>(std::clamp<double>(number, 0, std::numeric_limits<T>::max()));
    return number == std::clamp<double>(number, 0, std::numeric_limits<T>::max());
  } else {
    json.get_to(value);
    if constexpr (std::integral<T>) return value >= 0 && value <= kMaxCounted;
    return true;
  }
}
template <class T>
bool read_field(const FileJson& json, T& field) {
  bool understood = true;
  if constexpr (std::same_as<T, Texts>) {
    json.get_to(field);
  } else {
    for_each_field(field, [&]<class Value>(const char* name, Value& value, Presence presence = {}) {
      if (presence == Presence::kMayBeAbsent && !json.contains(name)) return;
      const FileJson& found = json.at(name);
      if constexpr (std::same_as<Value, double>) {
        if (presence == Presence::kNanAsNull && found.is_null()) {
          value = std::numeric_limits<double>::quiet_NaN();
          return;
        }
      }
      understood = read_value(found, value) && understood;
    });
  }
  if constexpr (std::same_as<T, kernels::LossScaleState>) understood &= is_possible(field);
  return understood;
}

[[noreturn]] void refuse(const std::string& file,
                         const std::string& why,
                         const char* hint = kAsWritten) {
  throw CheckpointError(fmt::format("cannot use {} as a checkpoint", file), why, hint);
}

// Reads the text, number or JSON of a key.
class Reader {
 public:
  Reader(const Texts& metadata, const std::string& file) : metadata_(metadata), file_(file) {}

  const std::string& text(const char* key) const {
    const auto found = metadata_.find(key);
    if (found == metadata_.end()) refuse(file_, fmt::format("it has no '{}'", key));
    return found->second;
  }
  template <class T>
  void operator()(const char* key, T& field) const {
    if constexpr (std::same_as<T, std::string>) {
      field = text(key);
    } else if constexpr (std::integral<T>) {
      const std::optional<int64_t> value = parse_int(text(key));
      if (!value || *value < 0) refuse_value(key);
      field = static_cast<T>(*value);
    } else {
      const auto read = [&](const std::string& text) {
        return read_field(parse_file<FileJson>(text), field);
      };
      if (!converted(key, read)) refuse_value(key);
    }
  }

  // Reads a key that may be absent; the field then keeps its value.
  template <class T>
  void read_if_there(const char* key, std::optional<T>& field) const {
    if (metadata_.contains(key)) (*this)(key, field.emplace());
  }

  template <class Convert>
  auto converted(const char* key, Convert&& convert) const {
    try {
      return convert(text(key));
    } catch (const FileJson::exception&) {
      refuse_value(key);
    }
  }

 private:
  [[noreturn]] void refuse_value(const char* key) const {
    refuse(file_, fmt::format("its '{}' is '{}'", key, printable(text(key))));
  }

  const Texts& metadata_;
  const std::string& file_;
};

class Ranges {
 public:
  explicit Ranges(const std::string& file) : file_(file) {}

  void expect(const char* name, int64_t value, int64_t min, int64_t max) const {
    if (value >= min && value <= max) return;
    refuse(file_, fmt::format("its '{}' is {}, expected {} to {}", name, value, min, max));
  }
  void expect_multiple(const char* name, int64_t value, const char* of, int64_t divisor) const {
    if (value % divisor == 0) return;
    refuse(file_, fmt::format("its '{}' is {}, no multiple of {}, {}", name, value, of, divisor));
  }

 private:
  const std::string& file_;
};

void check_run(const RunIdentity& run, const Ranges& ranges) {
  ranges.expect("global_batch", run.global_batch, 1, kMaxImages);
  ranges.expect("micro_steps", run.micro_steps, 1, kMaxMicroSteps);
  ranges.expect("shards", run.shards, 1, kMaxShards);
  ranges.expect("bn_groups", run.bn_groups, 1, kMaxShards);
  ranges.expect("start_epoch", run.start_epoch, 0, kMaxEpochs);
  ranges.expect_multiple("shards", run.shards, "bn_groups", run.bn_groups);
  ranges.expect_multiple("global_batch",
                         run.global_batch,
                         "bn_groups times micro_steps",
                         run.bn_groups * run.micro_steps);
}

// Refuses numbers that no run has: they would divide by zero or overflow, or count work that was
// not done. The digest shows that a file is as it was written, not that Lockstep wrote it.
void check_ranges(const CheckpointRecord& record, const std::string& file) {
  const Ranges ranges(file);
  const auto& [run, position, digest] = record;
  check_run(run, ranges);
  ranges.expect("steps", position.steps, 0, kMaxCounted);
  ranges.expect("applied_steps", position.applied, 0, position.steps);
  ranges.expect("epoch", position.epoch, run.start_epoch, kMaxEpochs);
  ranges.expect("epoch_sums.steps", position.sums.steps, 0, position.steps);
  ranges.expect("epoch_sums.images", position.sums.images, 0, kMaxCounted);
  ranges.expect("epoch_sums.correct1", position.sums.correct1, 0, position.sums.images);
  ranges.expect("epoch_sums.correct5", position.sums.correct5, 0, position.sums.images);
  ranges.expect("best.total", position.best.total, 0, kMaxCounted);
  ranges.expect("best.correct1", position.best.correct1, 0, position.best.total);
  ranges.expect("best.correct5", position.best.correct5, 0, position.best.total);
  ranges.expect("best_epoch", position.best_epoch, 0, kMaxEpochs);
}

// Numbers may be spelled in several ways.
bool same_value(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const std::optional<double> number = parse_float(a);
  return number && number == parse_float(b);
}

void compare(const Texts& now, const Texts& before, std::vector<std::string>& found) {
  for (const auto& [name, value] : now) {
    const auto old = before.find(name);
    if (old != before.end() && same_value(old->second, value)) continue;
    const std::string was = old == before.end() ? "nothing" : printable(old->second);
    found.push_back(fmt::format("{} is {}, was {}", name, value, was));
  }
  for (const auto& [name, value] : before) {
    if (!now.contains(name)) {
      found.push_back(fmt::format("{} is nothing, was {}", printable(name), printable(value)));
    }
  }
}

// The settings but for the epochs, with what programs did that did not record these.
Texts comparable(Texts settings) {
  const auto is = [&](const char* name, std::string_view value) {
    const auto found = settings.find(name);
    return found != settings.end() && found->second == value;
  };
  const bool is_recent = settings.erase(kEpochs) > 0;
  const bool cuts = is("lr-scheduler", "step") || is("lr-scheduler", "multistep");
  if (!is_recent && cuts && !is("warmup-epochs", "0")) settings["warmup-prefix"] = "false";
  return settings;
}

}  // namespace

Texts to_metadata(const CheckpointRecord& record) {
  const auto& [run, position, digest] = record;
  Texts metadata = {{kVersionKey, format_version()}};
  for_each_field(record,
                 [&](const char* key, const auto& field) { metadata[key] = field_text(field); });
  metadata[kSeedOrderKey] = field_text(run.seeds.order);
  metadata[kSeedWeightsKey] = field_text(run.seeds.weights);
  metadata[kScheduleKey] = position.schedule ? field_text(*position.schedule) : kNoSchedule;
  if (position.loss_scale) metadata[kGradScalerKey] = field_text(*position.loss_scale);
  if (position.early_stopping) metadata[kEarlyStoppingKey] = field_text(*position.early_stopping);
  if (run.evaluation.is_known()) metadata[kEvaluationKey] = to_json(run.evaluation);
  for (const char* key : kEnvironmentKeys) metadata[key] = run.environment.at(key);
  for (const char* key : kLaterKeys) {
    if (run.environment.contains(key)) metadata[key] = run.environment.at(key);
  }
  return metadata;
}

void check_version(const Texts& metadata, const std::string& file) {
  const std::string& version = Reader(metadata, file).text(kVersionKey);
  const std::string major = version.substr(0, version.find('.'));
  if (major == std::to_string(kFormatMajor)) return;
  refuse(
      file,
      fmt::format(
          "its format has version {}, this program reads {}.x", printable(version), kFormatMajor),
      "another checkpoint of that run, or --pretrained for weights alone");
}

EvaluationRecord recorded_evaluation(const Texts& metadata, const std::string& file) {
  if (!metadata.contains(kEvaluationKey)) return {};
  return Reader(metadata, file).converted(kEvaluationKey, evaluation_record_of);
}

CheckpointRecord record_of(const Texts& metadata, const std::string& file) {
  const Reader read(metadata, file);
  CheckpointRecord record;
  for (const char* key : kEnvironmentKeys) read(key, record.run.environment[key]);
  for (const char* key : kLaterKeys) {
    if (metadata.contains(key)) read(key, record.run.environment[key]);
  }
  for_each_field(record, read);
  record.run.evaluation = recorded_evaluation(metadata, file);
  TrainingPosition& position = record.position;
  if (read.text(kScheduleKey) != kNoSchedule) read.read_if_there(kScheduleKey, position.schedule);
  read.read_if_there(kGradScalerKey, position.loss_scale);
  read.read_if_there(kEarlyStoppingKey, position.early_stopping);
  Seeds& seeds = record.run.seeds;
  seeds.order = seeds.weights = seeds.run;
  if (metadata.contains(kSeedOrderKey)) read(kSeedOrderKey, seeds.order);
  if (metadata.contains(kSeedWeightsKey)) read(kSeedWeightsKey, seeds.weights);
  check_ranges(record, file);
  return record;
}

std::vector<std::string> differences(const RunIdentity& now, const RunIdentity& before) {
  std::vector<std::string> found;
  Texts environment = now.environment;
  for (const char* key : {kOnednnIsaKey, kAlgorithmKey}) {
    if (!before.environment.contains(key)) environment.erase(key);
  }
  compare(environment, before.environment, found);
  compare(comparable(now.settings), comparable(before.settings), found);
  return found;
}

void check_place(const TrainingPosition& position, int64_t steps_per_epoch) {
  const int64_t before = position.epoch * steps_per_epoch;
  if (position.sums.steps <= steps_per_epoch && position.steps == before + position.sums.steps)
    return;
  throw CheckpointError(
      "the checkpoint's place in its run makes no sense",
      fmt::format("it is after step {}, with {} steps of epoch {} done; an epoch has {} steps",
                  position.steps,
                  position.sums.steps,
                  position.epoch,
                  steps_per_epoch),
      kAsWritten);
}

}  // namespace lockstep::trainers
