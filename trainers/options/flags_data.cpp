#include "trainers/options/flag_rows.h"

namespace lockstep::trainers {
namespace {

using enum FlagKind;
using enum FlagGroup;
using enum HelpPage;

// clang-format off
constexpr Flag kDataFlags[] = {
    {.name = "data", .aliases = "--data-path", .kind = kString, .group = kData, .page = kShort,
     .metavar = "DIR", .help = "data directory, also as plain argument DIR [built-in set]",
     .origin = "torchvision"},
    {.name = "dataset", .kind = kChoice, .group = kData, .page = kShort, .initial = both("auto"),
     .choices = both("auto|digits|shapes|mnist|fashion-mnist|cifar10|imagefolder|synthetic"),
     .help = "auto: by the layout of DIR, the built-in set without", .origin = "timm"},
    {.name = "dummy", .kind = kBool, .group = kData, .means = "--dataset=synthetic",
     .help = "same as --dataset synthetic", .origin = "main.py"},
    {.name = "workers", .aliases = "-j", .kind = kInt, .group = kData, .page = kShort,
     .metavar = "N", .initial = both("2"), .range = {0, 256}, .help = "loader threads a rank",
     .origin = "main.py"},
    {.name = "val-batch-size", .aliases = "--test-batch-size", .kind = kInt, .group = kData,
     .metavar = "N", .initial = {"250", "100"}, .range = {1, kMillion},
     .help = "images a chunk of the evaluation", .origin = "Horovod"},
    {.name = "normalize", .kind = kString, .group = kData,
     .metavar = "none|dataset|MEAN,STD", .initial = both("dataset"),
     .help = "(pixels/255 - MEAN)/STD; dataset: its own constants",
     .origin = "Lockstep"},
    {.name = "train-crop-size", .kind = kInt, .group = kData, .resnet_only = true, .metavar = "N",
     .initial = both("224"), .range = {1, 4096}, .help = "photos: side of the training crop",
     .origin = "torchvision"},
    {.name = "val-resize-size", .kind = kInt, .group = kData, .resnet_only = true, .metavar = "N",
     .initial = both("256"), .range = {1, 4096},
     .help = "photos: short side before the center crop", .origin = "torchvision"},
    {.name = "val-crop-size", .kind = kInt, .group = kData, .resnet_only = true, .metavar = "N",
     .initial = both("224"), .range = {1, 4096}, .help = "photos: side of the center crop",
     .origin = "torchvision"},
    {.name = "decode", .kind = kChoice, .group = kData, .resnet_only = true,
     .initial = both("exact"), .choices = both("exact|shrunk"),
     .help = "shrunk: large JPEGs at 1/2 to 1/8; faster, not the same pixels",
     .origin = "Lockstep"},
    {.name = "cache-mb", .kind = kInt, .group = kData, .resnet_only = true, .metavar = "N",
     .initial = both("0"), .range = {0, kMillion}, .help = "memory a rank for decoded photos, MiB",
     .origin = "Lockstep"},
};
// clang-format on

}  // namespace

std::span<const Flag> data_flags() {
  return kDataFlags;
}

}  // namespace lockstep::trainers
