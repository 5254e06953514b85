#include "trainers/report/evaluation_record.h"

#include <limits>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "core/words.h"
#include "trainers/config/interpolations.h"
#include "trainers/config/normalization.h"

namespace lockstep::trainers {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTrained = "trained";
constexpr const char* kAverage = "moving average";

std::string bool_text(bool value) {
  return value ? "true" : "false";
}

void put_precision(const PrecisionConfig& precision, Texts& flags) {
  flags["opt-level"] = name_of(precision.level);
  if (!precision.is_mixed()) return;
  flags["dtype"] = name_of(precision.dtype);
  if (precision.level == OptLevel::kO1) return;
  flags["keep-batchnorm-fp32"] = bool_text(precision.keep_batchnorm_fp32);
  flags["master-weights"] = bool_text(precision.master_weights);
}

void put_photo_sizes(const data::PhotoOptions& photos, Texts& flags) {
  flags["train-crop-size"] = std::to_string(photos.train_crop);
  if (const data::CropRamp& ramp = photos.train_ramp; ramp.from > 0) {
    flags["res-from"] = std::to_string(ramp.from);
    flags["res-epochs"] = fmt::format("{}:{}", ramp.first, ramp.last);
  }
  flags["val-resize-size"] = std::to_string(photos.val_resize);
  flags["val-crop-size"] = std::to_string(photos.val_crop);
  flags["interpolation"] = name_of(photos.val_by);
  flags["train-interpolation"] = name_of(photos.train_by);
  flags["decode"] = photos.shrink ? "shrunk" : "exact";
}

}  // namespace

EvaluationRecord evaluation_record(const RunRequest& request, const data::DatasetPair& data) {
  const data::ImageShape shape = data.test->image_shape();
  EvaluationRecord record;
  record.image = fmt::format("{}x{}x{}", shape.channels, shape.height, shape.width);
  Texts& flags = record.flags;
  flags["arch"] = request.arch;
  flags["cifar-stem"] = bool_text(request.cifar_stem);
  flags["blur-pool"] = bool_text(request.blur_pool);
  flags["num-classes"] = std::to_string(request.classes.value_or(data.test->classes()));
  flags["normalize"] = normalize_text(normalization(request.normalize, *data.test));
  flags["tta"] = name_of(request.test.views);
  put_precision(request.precision, flags);
  if (data.test->name().starts_with("imagefolder/")) put_photo_sizes(request.photos, flags);
  constexpr size_t kWhole = std::numeric_limits<size_t>::max();
  for (const std::string& name : data.test->class_names()) {
    record.class_names.push_back(printable(name, kWhole));  // JSON is UTF-8, names of folders any
  }
  return record;
}

std::string to_json(const EvaluationRecord& record) {
  return Json{{"flags", record.flags},
              {"image", record.image},
              {"class_names", record.class_names},
              {"weights", record.average ? kAverage : kTrained}}
      .dump();
}

EvaluationRecord evaluation_record_of(const std::string& json) {
  const Json object = Json::parse(json);
  return {.flags = object.at("flags"),
          .image = object.at("image"),
          .class_names = object.at("class_names"),
          .average = object.at("weights") == kAverage};
}

}  // namespace lockstep::trainers
