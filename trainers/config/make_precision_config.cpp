#include <limits>

#include <fmt/core.h>

#include "core/error.h"
#include "core/words.h"
#include "trainers/config/config_from_flags.h"

namespace lockstep::trainers {
namespace {

std::optional<LossScaling> parse_loss_scale(const std::string& text) {
  if (text == "dynamic") return LossScaling{};
  // 2^-126: less is denormal, or 0, in f32.
  constexpr double kSmallest = std::numeric_limits<float>::min();
  constexpr double kLargest = 0x1p127;
  const std::optional<double> scale = parse_float(text);
  if (!scale || !(*scale >= kSmallest) || *scale > kLargest) {
    throw UsageError(fmt::format("bad value: --loss-scale {}", text),
                     "--loss-scale takes dynamic, or a number from 2^-126 to 2^127",
                     "--loss-scale dynamic, or --loss-scale 128");
  }
  if (*scale == 1) return std::nullopt;
  return LossScaling{.dynamic = false, .initial = static_cast<float>(*scale)};
}

std::optional<LossScaling> loss_scaling(const Options& options, const PrecisionConfig& config) {
  if (const Setting* given = options.find("loss-scale")) return parse_loss_scale(given->value);
  return usual_loss_scaling(config.level, config.dtype);
}

// Apex refuses these too, rather than ignore them.
void refuse_idle_flags(const Options& options, OptLevel level) {
  const bool has_types = level != OptLevel::kO0;
  const bool stores_16_bits = has_types && level != OptLevel::kO1;
  struct Use {
    std::string_view flag;
    bool used;
  };
  for (const Use& use : {Use{"dtype", has_types},
                         Use{"keep-batchnorm-fp32", stores_16_bits},
                         Use{"master-weights", stores_16_bits}}) {
    if (use.used || !options.given(use.flag)) continue;
    throw UsageError(
        fmt::format("--{} would change nothing at --opt-level {}", use.flag, name_of(level)),
        "it says how tensors are stored in 16 bits, and this level does not store these so",
        fmt::format("--opt-level O2, or leave --{} out", use.flag));
  }
}

}  // namespace

PrecisionConfig make_precision_config(const Options& options) {
  PrecisionConfig config = at_level(value_of(kOptLevelNames, options.text("opt-level")));
  refuse_idle_flags(options, config.level);
  config.dtype = value_of(kHalfTypeNames, options.text("dtype"));
  const auto boolean_or = [&](const char* flag, bool otherwise) {
    return options.find(flag) == nullptr ? otherwise : options.boolean(flag);
  };
  config.master_weights = boolean_or("master-weights", config.master_weights);
  config.keep_batchnorm_fp32 =
      boolean_or("keep-batchnorm-fp32", config.keep_batchnorm_fp32 || config.master_weights);
  if (config.master_weights && !config.keep_batchnorm_fp32) {
    throw UsageError("--keep-batchnorm-fp32 False needs --master-weights False",
                     "batch norm reads the f32 masters themselves: the 16-bit copies that Apex "
                     "makes of them would only lose precision",
                     "--opt-level O3, or leave --keep-batchnorm-fp32 out");
  }
  config.loss_scaling = loss_scaling(options, config);
  return config;
}

}  // namespace lockstep::trainers
