#include "trainers/report/precision_text.h"

#include <fmt/core.h>

#include "core/dtype.h"

namespace lockstep::trainers {

std::vector<std::string> notes_on(const PrecisionConfig& config, int64_t images, bool native_bf16) {
  std::vector<std::string> notes;
  if (!config.is_mixed()) return notes;
  if (config.dtype == Dtype::kF16 || !native_bf16) {
    notes.push_back(
        fmt::format("note: this processor has no {} arithmetic: it computes in f32 and rounds, "
                    "which is slower{}",
                    name_of(config.dtype),
                    native_bf16 ? " than --dtype bf16" : " than --opt-level O0"));
  }
  if (images % 8 != 0) {
    notes.push_back(fmt::format(
        "note: {} images per rank are not a multiple of 8: 16-bit units take 8 values at once; "
        "the rest is slower",
        images));
  }
  return notes;
}

std::vector<std::string> explain(const PrecisionConfig& config) {
  const std::string_view half = config.is_mixed() ? name_of(config.dtype) : "f32";
  const std::string_view stored = config.level == OptLevel::kO1 ? "f32" : half;
  const std::string_view cast = config.level == OptLevel::kO1 ? ", cast for each use" : "";
  const auto parameter = [&](bool in_f32) {
    if (in_f32 || !config.is_mixed()) return std::string("f32");
    return fmt::format("{} values", half);
  };
  std::vector<std::string> lines = {
      fmt::format("precision of --opt-level {}", name_of(config.level)),
      fmt::format("  images and activations             {}", stored),
      fmt::format("  conv, linear: input and result     {}{}", half, cast),
      fmt::format("  conv, linear: weights they read    {}", half),
      "  conv, linear: sums of products     f32",
      "  batch norm: statistics             f32",
      fmt::format("  batch norm: input and result       {}", stored),
      fmt::format("  relu, gelu, add, pools             {}, as their input", stored),
      fmt::format("  softmax, cross-entropy             f32, from logits in {}", half),
      "  gradients of activations           as the activations",
      "  gradients of parameters            f32",
      fmt::format("  weights that the optimizer updates {}", parameter(config.master_weights)),
      fmt::format("  batch norm: parameters             {}", parameter(config.keep_batchnorm_fp32)),
      "  optimizer state                    f32"};
  lines.push_back(
      !config.loss_scaling ? "  loss scale                         1"
      : config.loss_scaling->dynamic
          ? fmt::format("  loss scale                         dynamic, from {:g}",
                        config.loss_scaling->initial)
          : fmt::format("  loss scale                         {:g}", config.loss_scaling->initial));
  return lines;
}

}  // namespace lockstep::trainers
