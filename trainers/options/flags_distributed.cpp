#include "trainers/options/flag_rows.h"

namespace lockstep::trainers {
namespace {

using enum FlagKind;
using enum FlagGroup;
using enum HelpPage;

// clang-format off
constexpr Flag kDistributedFlags[] = {
    {.name = "shards", .kind = kInt, .group = kDistributed, .page = kShort, .metavar = "N",
     .range = {1, 65536}, .help = "parts of a step's images; fixes the bits [ranks x threads]",
     .origin = "Lockstep"},
    {.name = "bn-groups", .kind = kInt, .group = kDistributed, .page = kShort, .metavar = "N",
     .range = {1, 65536}, .help = "batch-norm groups a step [ranks]", .origin = "Lockstep"},
    {.name = "sync-bn", .kind = kBool, .group = kDistributed, .page = kShort,
     .initial = both("false"), .help = "same as --bn-groups 1", .origin = "Apex"},
    {.name = "device", .kind = kChoice, .group = kDistributed, .page = kShort,
     .initial = both("auto"), .choices = both("auto|cpu|cuda"),
     .help = "where to compute; auto: a GPU if one is visible", .origin = "torchvision"},
    {.name = "graph", .kind = kBool, .group = kDistributed, .initial = both("true"),
     .help = "CUDA: a step is recorded once and repeated", .origin = "Lockstep"},
    {.name = "autotune", .kind = kBool, .group = kDistributed, .initial = both("false"),
     .help = "CUDA: time cuDNN's engines for what the plan file lacks", .origin = "Lockstep"},
    {.name = "plan-file", .kind = kString, .group = kDistributed, .metavar = "FILE",
     .help = "CUDA: cuDNN's engines [RUN_DIR/plans.json with --autotune, else by rule]",
     .origin = "Lockstep"},
    {.name = "no-accel", .aliases = "--no-cuda", .kind = kBool, .group = kDistributed,
     .means = "--device=cpu", .help = "same as --device cpu", .origin = "main.py"},
    {.name = "threads", .kind = kInt, .group = kDistributed, .page = kShort, .metavar = "N",
     .range = {1, 1024}, .help = "threads a rank [OMP_NUM_THREADS, else cores/ranks]",
     .origin = "Lockstep"},
    {.name = "algorithm", .kind = kChoice, .group = kDistributed, .page = kShort,
     .initial = both("tree"), .choices = both("tree|ring|star|mpi|nccl|none"),
     .help = "how gradients are summed; same bits: tree, star", .origin = "Lockstep"},
    {.name = "transport", .kind = kChoice, .group = kDistributed,
     .initial = both("auto"), .choices = both("auto|shm|mpi|nccl|ipc"),
     .later_choices = both("threads"), .not_built = "ranks as threads outside its tests",
     .help = "how ranks talk; auto: shm on one host, nccl between GPUs, ipc on one GPU",
     .origin = "Lockstep"},
    {.name = "bucket-cap-mb", .aliases = "--fusion-threshold-mb", .kind = kFloat,
     .group = kDistributed, .metavar = "X", .initial = both("25"), .range = kFrom0,
     .help = "a gradient bucket is closed at X MiB", .origin = "DDP"},
    {.name = "first-bucket-mb", .kind = kFloat, .group = kDistributed, .metavar = "X",
     .initial = both("1"), .range = kFrom0,
     .help = "the same for the first one; with --bucket-cap-mb alone, that", .origin = "DDP"},
    {.name = "overlap", .kind = kBool, .group = kDistributed, .initial = both("true"),
     .help = "exchange gradients during the backward pass", .origin = "Apex"},
    {.name = "delay-allreduce", .kind = kBool, .group = kDistributed, .means = "--no-overlap",
     .help = "same as --no-overlap", .origin = "Apex"},
    {.name = "fp16-allreduce", .kind = kBool, .group = kDistributed, .initial = both("false"),
     .help = "exchange gradients as f16", .origin = "Horovod"},
    {.name = "gradient-predivide-factor", .kind = kFloat, .group = kDistributed, .metavar = "X",
     .initial = both("1"), .range = {1e-6, kMillion},
     .help = "gradients are divided by X before the exchange, multiplied after it",
     .origin = "Horovod"},
    {.name = "unused", .kind = kChoice, .group = kDistributed, .initial = both("error"),
     .choices = both("error|zero"), .help = "what a parameter without a gradient is",
     .origin = "Lockstep"},
    {.name = "find-unused-parameters", .kind = kBool, .group = kDistributed,
     .means = "--unused=zero", .help = "same as --unused zero", .origin = "DDP"},
    {.name = "check-ranks", .kind = kInt, .group = kDistributed, .metavar = "N",
     .initial = both("100"), .range = kFrom0,
     .help = "compare weights every N steps and after an epoch; 0: only then",
     .origin = "Lockstep"},
    {.name = "stall-abort", .kind = kInt, .group = kDistributed, .metavar = "S",
     .initial = both("60"), .range = {1, 86400}, .help = "give up on a silent rank after S seconds",
     .origin = "Horovod"},
    {.name = "stall-warn", .kind = kInt, .group = kDistributed, .metavar = "S", .range = {1, 86400},
     .not_built = "warning before --stall-abort", .help = "name a silent rank after S seconds",
     .origin = "Horovod"},
};
// clang-format on

}  // namespace

std::span<const Flag> distributed_flags() {
  return kDistributedFlags;
}

}  // namespace lockstep::trainers
