#include "trainers/options/flag_rows.h"

namespace lockstep::trainers {
namespace {

using enum FlagKind;
using enum FlagGroup;
using enum HelpPage;

// clang-format off
constexpr Flag kPrecisionFlags[] = {
    {.name = "opt-level", .kind = kChoice, .group = kPrecision, .page = kShort,
     .initial = both("O0"), .choices = both("O0|O1|O2|O3"),
     .help = "16 bits: none; conv, linear; all with f32 masters; all",
     .origin = "Apex"},
    {.name = "amp", .kind = kBool, .group = kPrecision, .means = "--opt-level=O1",
     .help = "same as --opt-level O1", .origin = "torchvision"},
    {.name = "fp16", .kind = kBool, .group = kPrecision, .means = "--opt-level=O2",
     .help = "same as --opt-level O2", .origin = "Apex"},
    {.name = "dtype", .kind = kChoice, .group = kPrecision, .initial = both("f16"),
     .choices = both("f16|bf16"), .help = "O1 to O3: the 16-bit type", .origin = "Lockstep"},
    {.name = "loss-scale", .aliases = "--static-loss-scale", .kind = kString, .group = kPrecision,
     .metavar = "X|dynamic",
     .help = "loss scale; dynamic, as O1 and O2 have it in f16, follows overflows; else 1",
     .origin = "Apex"},
    {.name = "dynamic-loss-scale", .kind = kBool, .group = kPrecision,
     .means = "--loss-scale=dynamic", .help = "same as --loss-scale dynamic", .origin = "Apex"},
    {.name = "keep-batchnorm-fp32", .kind = kBool, .group = kPrecision,
     .help = "overrides the level: batch norm's parameters", .origin = "Apex"},
    {.name = "master-weights", .kind = kBool, .group = kPrecision,
     .help = "overrides the level: f32 weights under the 16-bit ones", .origin = "Apex"},
    {.name = "explain-precision", .kind = kBool, .group = kPrecision, .initial = both("false"),
     .help = "print the type of each class of tensors and operations, and stop",
     .origin = "Lockstep"},
};
// clang-format on

}  // namespace

std::span<const Flag> precision_flags() {
  return kPrecisionFlags;
}

}  // namespace lockstep::trainers
