#include "trainers/options/flag_rows.h"

namespace lockstep::trainers {
namespace {

using enum FlagKind;
using enum FlagGroup;
using enum HelpPage;

// clang-format off
constexpr Flag kModelFlags[] = {
    {.name = "arch", .aliases = "-a --model", .kind = kChoice, .group = kModel, .page = kShort,
     .initial = {"convnet", "resnet50"},
     .choices = {"convnet|toy_net", "resnet18|resnet34|resnet50|resnet101|resnet152|resnet20|"
                 "resnet32|resnet44|resnet56|alexnet|vgg16|vgg16_bn|ghostnet_100"},
     .help = "network", .origin = "main.py"},
    {.name = "preset", .kind = kChoice, .group = kModel, .page = kShort,
     .choices = {"demo-baseline|demo-ddp", "apex-imagenet|imagenet-main"},
     .later_choices = {"ddp-tricks", ""},
     .not_built = "Lookahead, warmup and early stopping",
     .help = "settings of a tutorial; flags and environment win over it", .origin = "Lockstep"},
    {.name = "pretrained", .kind = kString, .group = kModel, .metavar = "FILE",
     .help = "start from the weights in this .safetensors", .origin = "main.py"},
    {.name = "evaluate", .aliases = "-e --test-only", .kind = kBool, .group = kModel,
     .initial = both("false"), .help = "evaluate --pretrained's or --resume's weights and stop",
     .origin = "main.py"},
    {.name = "num-classes", .kind = kInt, .group = kModel, .resnet_only = true, .metavar = "N",
     .range = {1, kMillion}, .help = "outputs of the last layer [the data set's classes]",
     .origin = "timm"},
    {.name = "zero-init-residual", .kind = kBool, .group = kModel, .resnet_only = true,
     .initial = both("false"), .help = "start each residual branch at 0",
     .origin = "torchvision"},
    {.name = "cifar-stem", .kind = kBool, .group = kModel, .resnet_only = true,
     .initial = both("false"), .help = "resnet18, resnet34: 3x3 stem of stride 1, no max-pool",
     .origin = "Lockstep"},
};
// clang-format on

}  // namespace

std::span<const Flag> model_flags() {
  return kModelFlags;
}

}  // namespace lockstep::trainers
