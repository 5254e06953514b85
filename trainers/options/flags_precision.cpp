#include "trainers/options/flag_rows.h"

namespace lockstep::trainers {
namespace {

using enum FlagKind;
using enum FlagGroup;
using enum HelpPage;

// clang-format off
constexpr Flag kFlags[] = {
    {.name = "opt-level", .kind = kChoice, .group = kPrecision, .page = kShort,
     .initial = both("O0"), .choices = both("O0"), .later_choices = both("O1|O2|O3"),
     .not_built = "mixed precision", .help = "precision; O0: f32 throughout", .origin = "Apex"},
    {.name = "amp", .kind = kBool, .group = kPrecision, .means = "--opt-level=O1",
     .help = "same as --opt-level O1", .origin = "torchvision"},
    {.name = "fp16", .kind = kBool, .group = kPrecision, .means = "--opt-level=O2",
     .help = "same as --opt-level O2", .origin = "Apex"},
    {.name = "dtype", .kind = kChoice, .group = kPrecision, .choices = both("f16|bf16"),
     .not_built = "mixed precision", .help = "16-bit type", .origin = "Lockstep"},
    {.name = "loss-scale", .aliases = "--static-loss-scale", .kind = kString, .group = kPrecision,
     .metavar = "X|dynamic", .initial = both("dynamic"), .not_built = "mixed precision",
     .help = "loss scale", .origin = "Apex"},
    {.name = "dynamic-loss-scale", .kind = kBool, .group = kPrecision,
     .means = "--loss-scale=dynamic", .help = "same as --loss-scale dynamic", .origin = "Apex"},
    {.name = "keep-batchnorm-fp32", .kind = kBool, .group = kPrecision,
     .not_built = "mixed precision", .help = "overrides the level", .origin = "Apex"},
    {.name = "master-weights", .kind = kBool, .group = kPrecision, .not_built = "mixed precision",
     .help = "overrides the level", .origin = "Apex"},
};
// clang-format on

}  // namespace

std::span<const Flag> precision_flags() {
  return kFlags;
}

}  // namespace lockstep::trainers
