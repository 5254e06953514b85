#include "trainers/config/augmentation_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "core/error.h"
#include "core/words.h"
#include "engine/settings/choice_names.h"
#include "engine/settings/usual_images.h"
#include "trainers/config/config_from_flags.h"

namespace lockstep::trainers {
namespace {

void check_erasing(const AugmentationConfig& asked, const std::string& name, int64_t side) {
  if (asked.cutout > 0 && asked.erase > 0) {
    throw UsageError("--cutout and --random-erase do not go together",
                     "an image has one box that is erased",
                     "leave one of them out");
  }
  if (asked.cutout <= side) return;
  throw UsageError(fmt::format("--cutout {} is too much", asked.cutout),
                   fmt::format("the shorter side of {} has {} pixels", name, side),
                   fmt::format("--cutout {} or less", side));
}

}  // namespace

Augmentation augmentation(const AugmentationConfig& asked,
                          uint64_t seed,
                          const data::Dataset& train) {
  Augmentation changes = usual_augmentation(train);
  changes.seed = seed;
  changes.flip = asked.flip.value_or(changes.flip);
  changes.pad = asked.crop_pad.value_or(changes.pad);
  changes.pad_mode = asked.pad_mode.value_or(changes.pad_mode);
  changes.trivial = asked.trivial;
  changes.bilinear = asked.bilinear;
  changes.rand = asked.rand;
  if ((changes.trivial || changes.rand.layers > 0) && !changes.resized_crop) {
    throw UsageError(
        "--auto-augment is for photos in class folders",
        fmt::format("it changes photos where they are decoded, and {} has none", train.name()),
        "leave it out");
  }
  if (changes.resized_crop && changes.pad > 0) {
    throw UsageError(
        "--crop-pad is for images of one size",
        fmt::format("{} has photos, and training sees a resized crop of each", train.name()),
        "leave it out");
  }
  if (asked.pad_mode && changes.pad == 0) {
    throw UsageError("--crop-pad-mode would change nothing",
                     fmt::format("no crop of {} reaches beyond its image", train.name()),
                     changes.resized_crop ? "leave it out" : "--crop-pad 4 beside it");
  }
  const data::ImageShape shape = train.image_shape();
  check_erasing(asked, train.name(), std::min(shape.height, shape.width));
  if (pad_fits(changes, shape.height, shape.width)) return changes;
  const int64_t max_pad =
      std::min(shape.height, shape.width) - (changes.pad_mode == PadMode::kReflect ? 1 : 0);
  throw UsageError(
      fmt::format("--crop-pad {} is too much", changes.pad),
      fmt::format("the images of {} are {}x{}", train.name(), shape.height, shape.width),
      fmt::format("--crop-pad {} or less", max_pad));
}

namespace {

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw UsageError(fmt::format("bad value: --normalize {}", text),
                   why,
                   "--normalize dataset, none, 0.1307,0.3081 or "
                   "0.485,0.456,0.406,0.229,0.224,0.225");
}

// Not by way of double: its rounding could lead to another float.
std::optional<float> parse_finite(std::string_view text) {
  float value = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc{} || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

kernels::NormalizeImageParams for_channels(const kernels::NormalizeImageParams& params,
                                           const data::Dataset& dataset) {
  const auto channels = static_cast<size_t>(dataset.image_shape().channels);
  if (params.mean.empty() || params.mean.size() == channels) return params;
  if (params.mean.size() == 1) {
    return {.mean = std::vector(channels, params.mean[0]),
            .std = std::vector(channels, params.std[0])};
  }
  throw UsageError(
      fmt::format("--normalize has {} means", params.mean.size()),
      fmt::format("the images of {} have {}", dataset.name(), counted(channels, "channel")),
      "--normalize MEAN,STD, which is for every channel");
}

}  // namespace

std::string normalize_text(const kernels::NormalizeImageParams& params) {
  if (params.mean.empty()) return "none";
  return fmt::format("{},{}", fmt::join(params.mean, ","), fmt::join(params.std, ","));
}

std::optional<kernels::NormalizeImageParams> parse_normalize(const std::string& text) {
  if (text == "dataset") return std::nullopt;
  if (text == "none") return kernels::NormalizeImageParams{};
  std::vector<float> numbers;
  for (const std::string_view word : split_words(text, ',')) {
    const std::optional<float> number = parse_finite(word);
    if (!number) refuse(text, fmt::format("'{}' is not a finite 32-bit number", word));
    numbers.push_back(*number);
  }
  if (numbers.size() != 2 && numbers.size() != 6) {
    refuse(text, "it takes a mean and a deviation, or three means and then three deviations");
  }
  const auto middle = numbers.begin() + std::ssize(numbers) / 2;
  kernels::NormalizeImageParams params{.mean = {numbers.begin(), middle},
                                       .std = {middle, numbers.end()}};
  for (const float deviation : params.std) {
    if (!(deviation > 0)) refuse(text, "pixels are divided by deviations: each is above 0");
  }
  return params;
}

kernels::NormalizeImageParams normalization(
    const std::optional<kernels::NormalizeImageParams>& asked, const data::Dataset& dataset) {
  return asked ? for_channels(*asked, dataset) : usual_normalization(dataset);
}

namespace {

constexpr std::array kFlips = {std::pair{Flip::kNone, "none"},
                               std::pair{Flip::kRandom, "random"},
                               std::pair{Flip::kAlternating, "alternating"}};
constexpr std::array kPadModes = {std::pair{PadMode::kZero, "zero"},
                                  std::pair{PadMode::kReflect, "reflect"}};

template <class Names>
auto meant_if_given(const Names& names, const Options& options, const char* flag) {
  const Setting* const setting = options.find(flag);
  return setting == nullptr ? std::nullopt : std::optional(value_of(names, setting->value));
}

// Reads `key` where it is a setting of timm's with such a value. Returns whether it is.
bool set_rand_augment(RandAugment& rand, std::string_view key, double value) {
  constexpr double kMaxLayers = 100;
  constexpr double kUniform = 100;  // deviations above it
  const bool is_whole = value == std::floor(value);
  if (key == "m" && is_whole)
    rand.magnitude = value;
  else if (key == "n" && is_whole && value >= 1 && value <= kMaxLayers)
    rand.layers = static_cast<int64_t>(value);
  else if (key == "p" && value <= 1)
    rand.probability = value;
  else if (key == "mstd") {
    rand.deviation = value;
    rand.uniform = value > kUniform;
  } else if (key == "mmax" && is_whole && value > 0)
    rand.most = value;
  else if (key == "inc" && is_whole)
    rand.increasing = value != 0;
  else
    return false;
  return true;
}

// "rand-m7-n2-p0.5-mstd0.5-mmax10-inc1", in which all but the first may be absent.
RandAugment parse_rand_augment(std::string_view text) {
  constexpr int64_t kUsualLayers = 2;
  RandAugment rand{.layers = kUsualLayers};
  const std::vector<std::string_view> words = split_words(text, '-');
  for (size_t i = 0; i < words.size(); ++i) {
    if (i == 0 && words[i] == "rand") continue;
    const size_t digits = std::min(words[i].find_first_of("0123456789"), words[i].size());
    const auto value = parse_float(words[i].substr(digits));
    if (i > 0 && value && set_rand_augment(rand, words[i].substr(0, digits), *value)) continue;
    throw UsageError(
        fmt::format("bad value: --auto-augment {}", printable(text)),
        "it takes none, ta_wide, ta_wide-bilinear, or timm's rand with m, n, p, mstd, mmax "
        "and inc",
        "--auto-augment rand-m7-n2-mstd0.5");
  }
  return rand;
}

// Drops what a preset asks for in vain beside flags that were given.
void drop_idle_presets(const Options& options, AugmentationConfig& config) {
  if (config.crop_pad == 0 && !options.given("crop-pad-mode")) config.pad_mode.reset();
  if (config.cutout == 0 || config.erase == 0) return;
  if (!options.given("cutout")) config.cutout = 0;
  if (options.given("cutout") && !options.given("random-erase")) config.erase = 0;
}

}  // namespace

AugmentationConfig make_augmentation_config(const Options& options) {
  const Setting* const given = options.find("auto-augment");  // train_resnet's
  const std::string automatic = given == nullptr ? "none" : given->value;
  const bool is_trivial = automatic == "ta_wide" || automatic == "ta_wide-bilinear";
  const bool is_rand = automatic != "none" && !is_trivial;
  AugmentationConfig config{.flip = meant_if_given(kFlips, options, "flip"),
                            .crop_pad = options.maybe_integer("crop-pad"),
                            .pad_mode = meant_if_given(kPadModes, options, "crop-pad-mode"),
                            .trivial = is_trivial,
                            .bilinear = automatic == "ta_wide-bilinear",
                            .rand = is_rand ? parse_rand_augment(automatic) : RandAugment{},
                            .erase = options.number("random-erase"),
                            .cutout = options.integer("cutout"),
                            .mixup = options.number("mixup"),
                            .cutmix = options.number("cutmix")};
  drop_idle_presets(options, config);
  return config;
}

}  // namespace lockstep::trainers
