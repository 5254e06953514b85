#include "trainers/checkpoint/checkpoint_record.h"

#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/printable.h"
#include "core/words.h"

namespace lockstep::trainers {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kVersionKey = "format_version";
constexpr const char* kGradScalerKey = "grad_scaler";
constexpr const char* kEvaluationKey = "evaluation";
constexpr const char* kEnvironmentKeys[] = {"isa", "lockstep", "onednn", "predivide", "wire"};
// Of the environment too.
constexpr const char* kCudaKeys[] = {"cublaslt", "cudnn", "plan_choices"};

// JSON has no number for these.
double number(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

Json json_of(const EpochSums& sums) {
  return {{"steps", sums.steps},
          {"images", sums.images},
          {"loss", sums.loss},
          {"correct1", sums.correct1},
          {"correct5", sums.correct5}};
}

EpochSums sums_of(const Json& json) {
  return {.steps = json.at("steps"),
          .images = json.at("images"),
          .loss = number(json.at("loss")),
          .correct1 = json.at("correct1"),
          .correct5 = json.at("correct5")};
}

Json json_of(const Evaluation& evaluation) {
  return {{"correct1", evaluation.correct1},
          {"correct5", evaluation.correct5},
          {"total", evaluation.total},
          {"loss", evaluation.loss}};
}

Evaluation evaluation_of(const Json& json) {
  return {.correct1 = json.at("correct1"),
          .correct5 = json.at("correct5"),
          .total = json.at("total"),
          .loss = number(json.at("loss"))};
}

[[noreturn]] void refuse(const std::string& file,
                         const std::string& why,
                         const char* hint = "another checkpoint of that run, as the run wrote it") {
  throw CheckpointError(fmt::format("cannot use {} as a checkpoint", file), why, hint);
}

// Reads one key after the other.
class Reader {
 public:
  Reader(const Texts& metadata, const std::string& file) : metadata_(metadata), file_(file) {}

  const std::string& text(const char* key) const {
    const auto found = metadata_.find(key);
    if (found == metadata_.end()) refuse(file_, fmt::format("it has no '{}'", key));
    return found->second;
  }
  std::string text_or_empty(const char* key) const {
    const auto found = metadata_.find(key);
    return found == metadata_.end() ? "" : found->second;
  }
  int64_t integer(const char* key) const {
    const std::optional<int64_t> value = parse_int(text(key));
    if (!value || *value < 0) refuse_value(key);
    return *value;
  }
  template <class Convert>
  auto converted(const char* key, Convert&& convert) const {
    try {
      return convert(text(key));
    } catch (const Json::exception&) {
      refuse_value(key);
    }
  }
  template <class Convert>
  auto json(const char* key, Convert&& convert) const {
    return converted(key, [&](const std::string& text) { return convert(Json::parse(text)); });
  }

 private:
  [[noreturn]] void refuse_value(const char* key) const {
    refuse(file_, fmt::format("its '{}' is '{}'", key, printable(text(key))));
  }

  const Texts& metadata_;
  const std::string& file_;
};

void compare(const Texts& now, const Texts& before, std::vector<std::string>& found) {
  for (const auto& [name, value] : now) {
    const auto old = before.find(name);
    const std::string was = old == before.end() ? "nothing" : printable(old->second);
    if (was != value) found.push_back(fmt::format("{} is {}, was {}", name, value, was));
  }
  for (const auto& [name, value] : before) {
    if (!now.contains(name)) {
      found.push_back(fmt::format("{} is nothing, was {}", printable(name), printable(value)));
    }
  }
}

}  // namespace

Texts to_metadata(const CheckpointRecord& record) {
  const RunIdentity& run = record.run;
  const TrainingPosition& at = record.at;
  Texts metadata = {
      {kVersionKey,
       fmt::format("{}.{}", CheckpointRecord::kMajorVersion, CheckpointRecord::kMinorVersion)},
      {"program", run.program},
      {"arch", run.arch},
      {"global_batch", std::to_string(run.global_batch)},
      {"micro_steps", std::to_string(run.micro_steps)},
      {"shards", std::to_string(run.shards)},
      {"bn_groups", std::to_string(run.bn_groups)},
      {"seed", std::to_string(run.seed)},
      {"start_epoch", std::to_string(run.start_epoch)},
      {"data_digest", run.data_digest},
      {"settings", Json(run.settings).dump()},
      {"steps", std::to_string(at.steps)},
      {"applied_steps", std::to_string(at.applied)},
      {"epoch", std::to_string(at.epoch)},
      {"epoch_sums", json_of(at.sums).dump()},
      {"best", json_of(at.best).dump()},
      {"best_epoch", std::to_string(at.best_epoch)},
      {"schedule", at.schedule},
      {"model_digest", record.model_digest}};
  if (!at.grad_scaler.empty()) metadata[kGradScalerKey] = at.grad_scaler;
  if (run.evaluation.is_known()) metadata[kEvaluationKey] = to_json(run.evaluation);
  for (const char* key : kEnvironmentKeys) metadata[key] = run.environment.at(key);
  for (const char* key : kCudaKeys) {
    if (run.environment.contains(key)) metadata[key] = run.environment.at(key);
  }
  return metadata;
}

void check_version(const Texts& metadata, const std::string& file) {
  const std::string& version = Reader(metadata, file).text(kVersionKey);
  const std::string major = version.substr(0, version.find('.'));
  if (major == std::to_string(CheckpointRecord::kMajorVersion)) return;
  refuse(file,
         fmt::format("its format has version {}, this program reads {}.x",
                     printable(version),
                     CheckpointRecord::kMajorVersion),
         "another checkpoint of that run, or --pretrained for weights alone");
}

EvaluationRecord recorded_evaluation(const Texts& metadata, const std::string& file) {
  if (!metadata.contains(kEvaluationKey)) return {};
  return Reader(metadata, file).converted(kEvaluationKey, evaluation_record_of);
}

CheckpointRecord record_of(const Texts& metadata, const std::string& file) {
  const Reader read(metadata, file);
  Texts environment;
  for (const char* key : kEnvironmentKeys) environment[key] = read.text(key);
  for (const char* key : kCudaKeys) {
    if (metadata.contains(key)) environment[key] = read.text(key);
  }
  return {
      .run = {.program = read.text("program"),
              .arch = read.text("arch"),
              .global_batch = read.integer("global_batch"),
              .micro_steps = read.integer("micro_steps"),
              .shards = read.integer("shards"),
              .bn_groups = read.integer("bn_groups"),
              .seed = static_cast<uint64_t>(read.integer("seed")),
              .start_epoch = read.integer("start_epoch"),
              .data_digest = read.text("data_digest"),
              .environment = std::move(environment),
              .settings = read.json("settings", [](const Json& json) { return json.get<Texts>(); }),
              .evaluation = recorded_evaluation(metadata, file)},
      .at = {.steps = read.integer("steps"),
             .applied = read.integer("applied_steps"),
             .epoch = read.integer("epoch"),
             .sums = read.json("epoch_sums", sums_of),
             .best = read.json("best", evaluation_of),
             .best_epoch = read.integer("best_epoch"),
             .schedule = read.text("schedule"),
             .grad_scaler = read.text_or_empty(kGradScalerKey)},
      .model_digest = read.text("model_digest")};
}

std::vector<std::string> differences(const RunIdentity& now, const RunIdentity& before) {
  std::vector<std::string> found;
  compare(now.environment, before.environment, found);
  compare(now.settings, before.settings, found);
  return found;
}

}  // namespace lockstep::trainers
