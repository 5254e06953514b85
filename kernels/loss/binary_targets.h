// The targets of an image's classes for the bodies of kernels/loss/binary_cross_entropy.h.
#pragma once

#include "kernels/loss/binary_cross_entropy.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

struct BinaryTargetRule {
  float smoothing;
  bool has_threshold;
  float threshold;
};

[[gnu::always_inline]] inline BinaryTargetRule target_rule_of(const BinaryCrossEntropyArgs& args) {
  return {args.params.label_smoothing,
          args.target_threshold.has_value(),
          args.target_threshold.value_or(0)};
}

struct BinaryTargets {
  float of_label, of_other, of_both;  // of_both: when the two labels are the same class
  float of_rest;
};

LS_HOST_DEVICE float target_of_class(const BinaryTargets& targets,
                                     int64_t c,
                                     int32_t label,
                                     int32_t other) {
  if (c == label) return c == other ? targets.of_both : targets.of_label;
  return c == other ? targets.of_other : targets.of_rest;
}

LS_HOST_DEVICE float cut(float target, const BinaryTargetRule& rule) {
  return target > rule.threshold ? 1 : 0;
}

LS_HOST_DEVICE BinaryTargets binary_targets(const BinaryTargetRule& rule,
                                            int64_t classes,
                                            float mix) {
  const double spread = static_cast<double>(rule.smoothing) / static_cast<double>(classes);
  const auto off = static_cast<float>(spread);
  const auto on = static_cast<float>(1 - static_cast<double>(rule.smoothing) + spread);
  const float rest = 1 - mix;
  const BinaryTargets targets = {.of_label = mix * on + rest * off,
                                 .of_other = mix * off + rest * on,
                                 .of_both = mix * on + rest * on,
                                 .of_rest = mix * off + rest * off};
  if (!rule.has_threshold) return targets;
  return {.of_label = cut(targets.of_label, rule),
          .of_other = cut(targets.of_other, rule),
          .of_both = cut(targets.of_both, rule),
          .of_rest = cut(targets.of_rest, rule)};
}

}  // namespace lockstep::kernels
