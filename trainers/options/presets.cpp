#include "trainers/options/presets.h"

#include <fmt/core.h>

#include "core/error.h"

namespace lockstep::trainers {
namespace {

constexpr std::string_view kDemoBaseline[] = {"--arch=convnet",
                                              "--batch-size=32",
                                              "--lr=1e-4",
                                              "--momentum=0",
                                              "--epochs=3",
                                              "--normalize=none"};
constexpr std::string_view kDemoDdp[] = {"--arch=convnet",
                                         "--batch-size=32",
                                         "--lr=1e-4",
                                         "--momentum=0",
                                         "--epochs=3",
                                         "--normalize=none",
                                         "--sync-bn",
                                         "--amp"};

// apex/examples/imagenet/main_amp.py: the batch is a rank's, the rate that of 256 images a step.
constexpr std::string_view kApexImagenet[] = {"--arch=resnet18",
                                              "--batch-size=256",
                                              "--epochs=90",
                                              "--lr=0.1",
                                              "--scale-lr",
                                              "--momentum=0.9",
                                              "--weight-decay=1e-4",
                                              "--warmup-epochs=5",
                                              "--warmup-method=apex",
                                              "--lr-scheduler=multistep",
                                              "--lr-milestones=30,60,80",
                                              "--lr-gamma=0.1",
                                              "--workers=4",
                                              "--print-freq=10"};
// pytorch/examples' imagenet/main.py: the batch is that of all ranks, as on one host there.
constexpr std::string_view kImagenetMain[] = {"--arch=resnet18",
                                              "--global-batch-size=256",
                                              "--epochs=90",
                                              "--lr=0.1",
                                              "--momentum=0.9",
                                              "--weight-decay=1e-4",
                                              "--lr-scheduler=step",
                                              "--lr-step-size=30",
                                              "--lr-gamma=0.1",
                                              "--workers=4",
                                              "--print-freq=10"};

constexpr Preset kPresets[] = {
    {.name = "demo-baseline", .arguments = kDemoBaseline},
    {.name = "demo-ddp", .arguments = kDemoDdp},
    {.name = "apex-imagenet", .arguments = kApexImagenet},
    {.name = "imagenet-main", .arguments = kImagenetMain},
};

}  // namespace

const Preset& preset_named(std::string_view name) {
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return preset;
  }
  throw InternalError(fmt::format("[preset] name: got {}, expected one of the table", name));
}

}  // namespace lockstep::trainers
