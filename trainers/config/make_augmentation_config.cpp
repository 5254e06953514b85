#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "core/error.h"
#include "core/words.h"
#include "engine/settings/choice_names.h"
#include "trainers/config/config_from_flags.h"

namespace lockstep::trainers {
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
