#include "trainers/options/flag_rows.h"

namespace lockstep::trainers {
namespace {

using enum FlagKind;
using enum FlagGroup;
using enum HelpPage;

// clang-format off
constexpr Flag kFlags[] = {
    {.name = "epochs", .kind = kInt, .group = kOptimiser, .page = kShort, .metavar = "N",
     .initial = {"3", "90"}, .range = {1, kMillion}, .help = "passes over the data",
     .origin = "main.py"},
    {.name = "start-epoch", .kind = kInt, .group = kOptimiser, .metavar = "N", .initial = both("0"),
     .range = {0, kMillion}, .help = "first epoch's number", .origin = "main.py"},
    {.name = "max-steps", .kind = kInt, .group = kOptimiser, .page = kShort, .metavar = "N",
     .range = kFrom1, .help = "stop after N optimiser steps", .origin = "llm.c"},
    {.name = "dry-run", .kind = kBool, .group = kOptimiser, .means = "--max-steps=1",
     .help = "same as --max-steps 1", .origin = "mnist/main.py"},
    {.name = "time-limit", .kind = kInt, .group = kOptimiser, .metavar = "S", .range = kFrom1,
     .not_built = "time limit", .help = "stop and save after S seconds", .origin = "llm.c"},
    {.name = "batch-size", .aliases = "-b --b", .kind = kInt, .group = kOptimiser, .page = kShort,
     .metavar = "N", .initial = {"64", "256"}, .range = {1, kMillion},
     .help = "images a rank and micro-step", .origin = "Apex"},
    {.name = "global-batch-size", .kind = kInt, .group = kOptimiser, .page = kShort, .metavar = "N",
     .range = kFrom1, .help = "images a step over all ranks, instead of -b", .origin = "Lockstep"},
    {.name = "batches-per-allreduce", .aliases = "--accum-steps", .kind = kInt, .group = kOptimiser,
     .metavar = "N", .initial = both("1"), .range = {1, kMillion},
     .help = "micro-steps an optimiser step: gradients add up before one exchange",
     .origin = "Horovod"},
    {.name = "opt", .kind = kChoice, .group = kOptimiser, .initial = both("sgd"),
     .choices = both("sgd"), .later_choices = both("adam"), .not_built = "such optimiser",
     .help = "optimiser", .origin = "torchvision"},
    {.name = "lr", .aliases = "--learning-rate", .kind = kFloat, .group = kOptimiser,
     .page = kShort, .metavar = "X", .initial = {"0.02", "0.1"}, .range = {0, 1000},
     .help = "learning rate", .origin = "main.py"},
    {.name = "scale-lr", .kind = kBool, .group = kOptimiser, .not_built = "learning rate rule",
     .help = "lr *= images a step / 256", .origin = "Apex"},
    {.name = "lr-scheduler", .kind = kChoice, .group = kOptimiser, .initial = {"const", "step"},
     .choices = both("const"), .later_choices = both("step|cosine"),
     .not_built = "learning rate schedule", .help = "schedule", .origin = "torchvision"},
    {.name = "lr-step-size", .kind = kInt, .group = kOptimiser, .metavar = "N",
     .initial = both("30"), .range = kFrom1, .not_built = "learning rate schedule",
     .help = "epochs between two cuts", .origin = "torchvision"},
    {.name = "lr-gamma", .aliases = "--gamma", .kind = kFloat, .group = kOptimiser, .metavar = "X",
     .initial = both("0.1"), .range = kUnit, .not_built = "learning rate schedule",
     .help = "factor of a cut", .origin = "torchvision"},
    {.name = "warmup-epochs", .aliases = "--lr-warmup-epochs", .kind = kInt, .group = kOptimiser,
     .metavar = "N", .initial = {"0", "5"}, .range = {0, kMillion},
     .not_built = "learning rate schedule", .help = "epochs of rising learning rate",
     .origin = "Horovod"},
    {.name = "lr-dry-run", .kind = kBool, .group = kOptimiser,
     .not_built = "learning rate schedule", .help = "print the learning rates and stop",
     .origin = "Lockstep"},
    {.name = "momentum", .kind = kFloat, .group = kOptimiser, .page = kShort, .metavar = "X",
     .initial = both("0.9"), .range = kUnit, .help = "momentum of SGD", .origin = "main.py"},
    {.name = "nesterov", .kind = kBool, .group = kOptimiser, .initial = both("false"),
     .help = "Nesterov's momentum", .origin = "timm"},
    {.name = "weight-decay", .aliases = "--wd", .kind = kFloat, .group = kOptimiser, .page = kShort,
     .metavar = "X", .initial = {"0", "1e-4"}, .range = {0, 1000}, .help = "weight decay",
     .origin = "main.py"},
    {.name = "bias-decay", .kind = kBool, .group = kOptimiser, .initial = both("true"),
     .not_built = "parameter groups", .help = "decay biases and batch-norm parameters too",
     .origin = "torchvision"},
    {.name = "label-smoothing", .kind = kFloat, .group = kOptimiser, .metavar = "X",
     .initial = both("0"), .range = kUnit, .help = "label smoothing", .origin = "torchvision"},
    {.name = "clip-grad-norm", .kind = kFloat, .group = kOptimiser, .metavar = "X", .range = kFrom0,
     .not_built = "gradient clipping", .help = "largest norm of the gradient",
     .origin = "torchvision"},
    {.name = "seed", .kind = kInt, .group = kOptimiser, .page = kShort, .metavar = "N",
     .initial = both("1"), .range = {0, 0x1p53},
     .help = "of initial weights, order and augmentation", .origin = "main.py"},
    {.name = "deterministic", .aliases = "--use-deterministic-algorithms", .kind = kBool,
     .group = kOptimiser, .initial = both("true"),
     .help = "changes nothing: every run repeats its bits", .origin = "Apex"},
};
// clang-format on

}  // namespace

std::span<const Flag> optimiser_flags() {
  return kFlags;
}

}  // namespace lockstep::trainers
