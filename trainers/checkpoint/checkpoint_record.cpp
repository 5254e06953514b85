#include "trainers/checkpoint/checkpoint_record.h"

#include <concepts>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/words.h"
#include "engine/state/weights_file.h"
#include "trainers/checkpoint/record_ranges.h"
#include "trainers/checkpoint/state_texts.h"
#include "trainers/config/file_json.h"

namespace lockstep::trainers {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kGradScalerKey = "grad_scaler";
constexpr const char* kEarlyStoppingKey = "early_stopping";
constexpr const char* kScheduleKey = "schedule";
constexpr const char* kSeedOrderKey = "seed_order";  // absent: the seed
constexpr const char* kSeedWeightsKey = "seed_weights";
constexpr const char* kEnvironmentKeys[] = {"isa", "lockstep", "onednn", "predivide", "wire"};
// Not known of earlier programs' runs.
constexpr const char* kOnednnIsaKey = "onednn_isa";
constexpr const char* kAlgorithmKey = "algorithm";
// Keys of the environment that only runs on CUDA have, or only files of later programs.
constexpr const char* kLaterKeys[] = {
    "cublaslt", "cudnn", "plan_choices", kOnednnIsaKey, kAlgorithmKey};

template <class T, class Plain>
concept Possibly = std::same_as<std::remove_const_t<T>, Plain>;  // const or not

// Calls visit(name, field) for each field of a file, to write it or to read it.
void for_each_field(Possibly<EpochSums> auto& sums, auto&& visit) {
  visit("steps", sums.steps);
  visit("images", sums.images);
  visit("loss", sums.loss);
  visit("correct1", sums.correct1);
  visit("correct5", sums.correct5);
}

void for_each_field(Possibly<Evaluation> auto& evaluation, auto&& visit) {
  visit("correct1", evaluation.correct1);
  visit("correct5", evaluation.correct5);
  visit("total", evaluation.total);
  visit("loss", evaluation.loss);
}

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
    Json json;
    for_each_field(field, [&](const char* name, const auto& value) { json[name] = value; });
    return json.dump();
  }
}

bool read_number(const FileJson& json, int64_t& number) {
  json.get_to(number);
  return number >= 0;
}

bool read_number(const FileJson& json, double& number) {
  const bool nan = json.is_null();  // JSON has no NaN
  number = nan ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
  return true;
}

// Returns false, or throws an exception of Json's, for a value that is no such field's.
template <class T>
bool read_field(const FileJson& json, T& field) {
  bool understood = true;
  if constexpr (std::same_as<T, Texts>) {
    json.get_to(field);
  } else {
    for_each_field(field, [&](const char* name, auto& value) {
      understood = read_number(json.at(name), value) && understood;
    });
  }
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
  template <class Convert>
  void read_if_there(const char* key, Convert&& convert, auto& field) const {
    if (!metadata_.contains(key)) return;
    field = converted(key, convert);
    if (!field) refuse_value(key);
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
  metadata[kScheduleKey] = to_text(position.schedule);
  if (position.loss_scale) metadata[kGradScalerKey] = to_text(*position.loss_scale);
  if (position.early_stopping) metadata[kEarlyStoppingKey] = to_text(*position.early_stopping);
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
  position.schedule = read.converted(kScheduleKey, schedule_state_of);
  read.read_if_there(kGradScalerKey, loss_scale_state_of, position.loss_scale);
  read.read_if_there(kEarlyStoppingKey, early_stopping_state_of, position.early_stopping);
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

}  // namespace lockstep::trainers
