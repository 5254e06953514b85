#include "nn/alexnet.h"

namespace lockstep::nn {
namespace {

constexpr int64_t kPooled = 6;
constexpr int64_t kChannels = 256;

std::vector<ConvUnit> units() {
  const auto conv = [](int64_t in, int64_t out, int kernel) {
    return Conv2dOptions{
        .in_channels = in, .out_channels = out, .kernel = kernel, .pad = kernel / 2};
  };
  return {{{.in_channels = 3, .out_channels = 64, .kernel = 11, .stride = 4, .pad = 2}, 3},
          {conv(64, 192, 5), 3},
          {conv(192, 384, 3)},
          {conv(384, kChannels, 3)},
          {conv(kChannels, kChannels, 3), 3}};
}

}  // namespace

AlexNet::AlexNet(const Init& init, const AlexNetOptions& options)
    : features_(init, units(), false),
      classifier_(init,
                  {.in_image = {kChannels, kPooled, kPooled},
                   .hidden = options.hidden,
                   .classes = options.classes,
                   .dropout = options.dropout,
                   .dropout_first = true}) {
  register_module("features", features_);
  register_module("classifier", classifier_);
}

Var AlexNet::forward(const Var& x) {
  return classifier_.forward(adaptive_avg_pool2d(features_.forward(x), kPooled, kPooled));
}

}  // namespace lockstep::nn
