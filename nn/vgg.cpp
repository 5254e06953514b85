#include "nn/vgg.h"

#include <array>

#include "nn/init.h"

namespace lockstep::nn {
namespace {

constexpr int64_t kPooled = 7;

struct Group {
  int64_t channels;
  int convolutions;
};
constexpr std::array<Group, 5> kGroups = {{{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}}};

std::vector<ConvUnit> units() {
  std::vector<ConvUnit> units;
  int64_t in_channels = 3;
  for (const Group& group : kGroups) {
    for (int i = 0; i < group.convolutions; ++i) {
      units.push_back(
          {{.in_channels = in_channels, .out_channels = group.channels, .kernel = 3, .pad = 1}});
      in_channels = group.channels;
    }
    units.back().pool = 2;
  }
  return units;
}

}  // namespace

Vgg16::Vgg16(const Init& init, const VggOptions& options)
    : features_(init, units(), options.batch_norm),
      classifier_(init,
                  {.in_image = {kGroups.back().channels, kPooled, kPooled},
                   .hidden = options.hidden,
                   .classes = options.classes,
                   .dropout = options.dropout}) {
  register_module("features", features_);
  register_module("classifier", classifier_);

  constexpr double kLinearStd = 0.01;
  for (const NamedParameter& parameter : named_parameters()) {
    if (parameter.of_norm) continue;
    Tensor value = parameter.var.value();
    if (parameter.file_shape.rank() == 4) kaiming_normal(init, Fan::kOut, value);
    if (parameter.file_shape.rank() == 2) normal(init, kLinearStd, value);
    if (parameter.file_shape.rank() == 1) fill(init, 0, value);
  }
}

Var Vgg16::forward(const Var& x) {
  return classifier_.forward(adaptive_avg_pool2d(features_.forward(x), kPooled, kPooled));
}

}  // namespace lockstep::nn
