#include "trainers/options/presets.h"

#include "core/error.h"

namespace lockstep::trainers {
namespace {

constexpr std::string_view kDemoBaseline[] = {
    "--arch=convnet", "--batch-size=32", "--lr=1e-4", "--momentum=0", "--epochs=3"};
constexpr std::string_view kDemoDdp[] = {"--arch=convnet",
                                         "--batch-size=32",
                                         "--lr=1e-4",
                                         "--momentum=0",
                                         "--epochs=3",
                                         "--sync-bn",
                                         "--amp"};

constexpr Preset kPresets[] = {
    {.name = "demo-baseline", .arguments = kDemoBaseline},
    {.name = "demo-ddp", .arguments = kDemoDdp},
};

}  // namespace

const Preset& preset_named(std::string_view name) {
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return preset;
  }
  throw InternalError(fmt::format("[preset] name: got {}, expected one of the table", name));
}

}  // namespace lockstep::trainers
