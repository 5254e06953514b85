#include "trainers/options/option_table.h"

#include <algorithm>
#include <cctype>

namespace lockstep::trainers {
namespace {

using enum FlagKind;
using enum FlagGroup;
using enum HelpPage;

constexpr PerProgram both(std::string_view value) {
  return {.convnet = value, .resnet = value};
}

constexpr double kMillion = 1e6;
constexpr FlagRange kFrom0{.min = 0, .max = 1e9};
constexpr FlagRange kFrom1{.min = 1, .max = 1e9};
constexpr FlagRange kUnit{.min = 0, .max = 1};

// One row a flag reads better than one field a line.
// clang-format off
constexpr Flag kFlags[] = {
    // ---- Data
    {.name = "data", .aliases = "--data-path", .kind = kString, .group = kData, .page = kShort,
     .metavar = "DIR", .help = "data directory, also as plain argument DIR [built-in set]",
     .origin = "torchvision"},
    {.name = "dataset", .kind = kChoice, .group = kData, .page = kShort, .initial = both("auto"),
     .choices = both("auto|digits|mnist|fashion-mnist|synthetic"),
     .later_choices = both("shapes|cifar10|imagefolder"), .not_built = "reader for this data set",
     .help = "auto: by the layout of DIR, digits without DIR", .origin = "timm"},
    {.name = "dummy", .kind = kBool, .group = kData, .page = kShort, .means = "--dataset=synthetic",
     .help = "same as --dataset synthetic", .origin = "main.py"},
    {.name = "workers", .aliases = "-j", .kind = kInt, .group = kData, .page = kShort,
     .metavar = "N", .initial = both("2"), .range = {0, 256}, .help = "loader threads a rank",
     .origin = "main.py"},
    {.name = "val-batch-size", .aliases = "--test-batch-size", .kind = kInt, .group = kData,
     .page = kShort, .metavar = "N", .initial = {"250", "100"}, .range = {1, kMillion},
     .help = "images a chunk of the evaluation", .origin = "Horovod"},
    {.name = "train-crop-size", .kind = kInt, .group = kData, .resnet_only = true, .metavar = "N",
     .initial = both("224"), .range = {1, 4096}, .not_built = "training on ImageNet-sized pictures",
     .help = "side of the training crop", .origin = "torchvision"},
    {.name = "val-resize-size", .kind = kInt, .group = kData, .resnet_only = true, .metavar = "N",
     .initial = both("256"), .range = {1, 4096}, .not_built = "training on ImageNet-sized pictures",
     .help = "short side before the centre crop", .origin = "torchvision"},
    {.name = "val-crop-size", .kind = kInt, .group = kData, .resnet_only = true, .metavar = "N",
     .initial = both("224"), .range = {1, 4096}, .not_built = "training on ImageNet-sized pictures",
     .help = "side of the centre crop", .origin = "torchvision"},

    // ---- Model
    {.name = "arch", .aliases = "-a --model", .kind = kChoice, .group = kModel, .page = kShort,
     .initial = {"convnet", "auto"},
     .choices = {"convnet|toy_net", "auto|resnet18|resnet34|resnet50|resnet101|resnet152|resnet20|"
                 "resnet32|resnet44|resnet56"},
     .help = "network", .origin = "main.py"},
    {.name = "preset", .kind = kChoice, .group = kModel, .page = kShort,
     .choices = {"demo-baseline|demo-ddp", ""}, .later_choices = {"ddp-tricks", ""},
     .not_built = "Lookahead, warmup and early stopping",
     .help = "settings of a tutorial; flags and environment win over it", .origin = "Lockstep"},
    {.name = "pretrained", .kind = kString, .group = kModel, .metavar = "FILE",
     .not_built = "reading of weight files", .help = "start from these weights",
     .origin = "main.py"},
    {.name = "evaluate", .aliases = "-e --test-only", .kind = kBool, .group = kModel,
     .not_built = "evaluation of saved weights", .help = "evaluate and stop", .origin = "main.py"},
    {.name = "num-classes", .kind = kInt, .group = kModel, .resnet_only = true, .metavar = "N",
     .range = {1, kMillion}, .help = "outputs of the last layer [the data set's classes]", .origin = "timm"},
    {.name = "zero-init-residual", .kind = kBool, .group = kModel, .resnet_only = true,
     .initial = both("false"), .help = "start each residual branch at 0",
     .origin = "torchvision"},
    {.name = "cifar-stem", .kind = kBool, .group = kModel, .resnet_only = true,
     .initial = both("false"), .help = "resnet18, resnet34: 3x3 stem of stride 1, no max-pool",
     .origin = "Lockstep"},

    // ---- Optimiser
    {.name = "epochs", .kind = kInt, .group = kOptimiser, .page = kShort, .metavar = "N",
     .initial = {"3", "90"}, .range = {1, kMillion}, .help = "passes over the data",
     .origin = "main.py"},
    {.name = "start-epoch", .kind = kInt, .group = kOptimiser, .metavar = "N", .initial = both("0"),
     .range = {0, kMillion}, .not_built = "start from a later epoch",
     .help = "first epoch's number", .origin = "main.py"},
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

    // ---- Precision
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

    // ---- Distributed
    {.name = "shards", .kind = kInt, .group = kDistributed, .page = kShort, .metavar = "N",
     .range = {1, 65536}, .help = "parts of a step's images; fixes the bits [ranks x threads]",
     .origin = "Lockstep"},
    {.name = "bn-groups", .kind = kInt, .group = kDistributed, .page = kShort, .metavar = "N",
     .range = {1, 65536}, .help = "batch-norm groups a step [ranks]", .origin = "Lockstep"},
    {.name = "sync-bn", .kind = kBool, .group = kDistributed, .page = kShort,
     .initial = both("false"), .help = "same as --bn-groups 1", .origin = "Apex"},
    {.name = "device", .kind = kChoice, .group = kDistributed, .page = kShort,
     .initial = both("auto"), .choices = both("auto|cpu"), .later_choices = both("cuda"),
     .not_built = "CUDA", .help = "where to compute", .origin = "torchvision"},
    {.name = "no-accel", .aliases = "--no-cuda", .kind = kBool, .group = kDistributed,
     .means = "--device=cpu", .help = "same as --device cpu", .origin = "main.py"},
    {.name = "threads", .kind = kInt, .group = kDistributed, .page = kShort, .metavar = "N",
     .range = {1, 1024}, .help = "threads a rank [OMP_NUM_THREADS, else cores/ranks]",
     .origin = "Lockstep"},
    {.name = "algorithm", .kind = kChoice, .group = kDistributed, .page = kShort,
     .initial = both("tree"), .choices = both("tree|ring|star|mpi|none"),
     .later_choices = both("nccl"), .not_built = "NCCL",
     .help = "how gradients are summed; same bits: tree, star", .origin = "Lockstep"},
    {.name = "transport", .kind = kChoice, .group = kDistributed, .page = kShort,
     .initial = both("auto"), .choices = both("auto|shm|mpi"),
     .later_choices = both("threads|nccl|ipc"),
     .not_built = "NCCL, no CUDA IPC and, outside its tests, no ranks as threads",
     .help = "how ranks talk; auto: shm on one host", .origin = "Lockstep"},
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
    {.name = "stall-abort", .kind = kInt, .group = kDistributed, .page = kShort, .metavar = "S",
     .initial = both("60"), .range = {1, 86400}, .help = "give up on a silent rank after S seconds",
     .origin = "Horovod"},
    {.name = "stall-warn", .kind = kInt, .group = kDistributed, .metavar = "S", .range = {1, 86400},
     .not_built = "warning before --stall-abort", .help = "name a silent rank after S seconds",
     .origin = "Horovod"},

    // ---- Output
    {.name = "output-dir", .aliases = "-o", .kind = kString, .group = kOutput, .page = kShort,
     .metavar = "DIR", .help = "run directory [runs/<utc>-<arch>-n<ranks>]",
     .origin = "torchvision"},
    {.name = "overwrite", .kind = kBool, .group = kOutput, .page = kShort, .initial = both("false"),
     .help = "write into a directory that holds a run", .origin = "Lockstep"},
    {.name = "name", .kind = kString, .group = kOutput, .metavar = "TEXT",
     .not_built = "names of runs", .help = "name of the run", .origin = "timm"},
    {.name = "print-freq", .aliases = "-p --log-interval", .kind = kInt, .group = kOutput,
     .page = kShort, .metavar = "N", .initial = both("10"), .range = kFrom1,
     .help = "steps between two log lines", .origin = "main.py"},
    {.name = "progress", .kind = kChoice, .group = kOutput, .page = kShort, .initial = both("auto"),
     .choices = both("auto|bar|line|none"), .later_choices = both("json"),
     .not_built = "progress in JSON", .help = "how to show progress", .origin = "Lockstep"},
    {.name = "quiet", .aliases = "-q", .kind = kBool, .group = kOutput, .page = kShort,
     .initial = both("false"), .help = "only results and errors", .origin = "Lockstep"},
    {.name = "verbose", .aliases = "-v", .kind = kBool, .group = kOutput, .initial = both("false"),
     .help = "with --version: build and processor too", .origin = "Horovod"},
    {.name = "color", .kind = kChoice, .group = kOutput, .initial = both("auto"),
     .choices = both("auto|always|never"), .not_built = "coloured output", .help = "colour",
     .origin = "Lockstep"},
    {.name = "resume", .kind = kString, .group = kOutput, .metavar = "PATH|auto",
     .not_built = "continuation of a run", .help = "continue a run", .origin = "main.py"},
    {.name = "save-freq", .kind = kInt, .group = kOutput, .metavar = "N", .initial = both("1"),
     .range = kFrom1, .not_built = "choice of when to save", .help = "epochs between checkpoints",
     .origin = "timm"},
    {.name = "save-steps", .kind = kInt, .group = kOutput, .metavar = "N", .range = kFrom1,
     .not_built = "choice of when to save", .help = "steps between checkpoints", .origin = "llm.c"},
    {.name = "keep", .kind = kInt, .group = kOutput, .metavar = "N", .initial = both("3"),
     .range = kFrom1, .not_built = "history of checkpoints", .help = "checkpoints to keep",
     .origin = "llm.c"},
    {.name = "eval-freq", .kind = kInt, .group = kOutput, .metavar = "N", .initial = both("1"),
     .range = kFrom1, .not_built = "choice of when to evaluate",
     .help = "epochs between evaluations", .origin = "Lockstep"},
    {.name = "tensorboard", .kind = kBool, .group = kOutput, .initial = both("true"),
     .not_built = "TensorBoard writer", .help = "write TensorBoard events", .origin = "Lockstep"},
    {.name = "csv", .kind = kBool, .group = kOutput, .not_built = "CSV writer",
     .help = "write metrics.csv", .origin = "timm"},
    {.name = "histograms", .kind = kInt, .group = kOutput, .metavar = "N", .range = kFrom1,
     .not_built = "TensorBoard writer", .help = "write histograms every N steps",
     .origin = "Lockstep"},
    {.name = "trace", .aliases = "--timeline-filename", .kind = kString, .group = kOutput,
     .metavar = "A:B", .not_built = "timeline", .help = "write a timeline of steps A to B",
     .origin = "Horovod"},
    {.name = "prof", .kind = kInt, .group = kOutput, .metavar = "N", .range = kFrom0,
     .not_built = "profiling mode", .help = "profile ten steps from N, then stop",
     .origin = "Apex"},
    {.name = "nvtx", .kind = kBool, .group = kOutput, .not_built = "CUDA", .help = "NVTX ranges",
     .origin = "Apex"},
    {.name = "report", .kind = kBool, .group = kOutput, .initial = both("true"),
     .not_built = "report writer", .help = "write report.html", .origin = "Lockstep"},
    {.name = "anonymous", .kind = kBool, .group = kOutput,
     .not_built = "switch for host names in files", .help = "keep host names out of files",
     .origin = "Lockstep"},
    {.name = "config", .aliases = "-c", .kind = kString, .group = kOutput, .metavar = "FILE",
     .not_built = "reader for configuration files", .help = "defaults from a TOML file",
     .origin = "timm"},
    {.name = "print-config", .kind = kBool, .group = kOutput,
     .not_built = "writer for configuration files", .help = "print the resolved configuration",
     .origin = "Lockstep"},
    {.name = "json", .kind = kBool, .group = kOutput, .not_built = "summary on stdout",
     .help = "one summary object on stdout", .origin = "Lockstep"},
    {.name = "help", .aliases = "-h", .kind = kBool, .group = kOutput, .page = kShort,
     .help = "this page", .origin = "main.py"},
    {.name = "help-all", .kind = kBool, .group = kOutput, .page = kShort, .help = "every flag",
     .origin = "Lockstep"},
    {.name = "version", .kind = kBool, .group = kOutput, .page = kShort,
     .help = "version; with -v build and processor", .origin = "Horovod"},
    {.name = "check-build", .kind = kBool, .group = kOutput, .means = "--version",
     .help = "same as --version", .origin = "Horovod"},
    {.name = "completion", .kind = kChoice, .group = kOutput, .choices = both("bash|zsh|fish"),
     .not_built = "writer for completions", .help = "print a shell completion",
     .origin = "Lockstep"},
    {.name = "man", .kind = kBool, .group = kOutput, .not_built = "writer for the man page",
     .help = "print the man page", .origin = "Lockstep"},
};
// clang-format on

}  // namespace

std::string_view name_of(Program program) {
  return program == Program::kTrainConvnet ? "train_convnet" : "train_resnet";
}

std::string_view name_of(FlagGroup group) {
  switch (group) {
    case kData:
      return "Data";
    case kModel:
      return "Model";
    case kOptimiser:
      return "Optimiser";
    case kPrecision:
      return "Precision";
    case kDistributed:
      return "Distributed";
    case kOutput:
      break;
  }
  return "Output";
}

std::span<const Flag> flag_table() {
  return kFlags;
}

const Flag* find_flag(std::string_view dashed) {
  for (const Flag& flag : kFlags) {
    if (dashed.starts_with("--") && dashed.substr(2) == flag.name) return &flag;
    const auto aliases = split_words(flag.aliases, ' ');
    if (std::find(aliases.begin(), aliases.end(), dashed) != aliases.end()) return &flag;
  }
  return nullptr;
}

std::vector<std::string_view> split_words(std::string_view words, char separator) {
  std::vector<std::string_view> parts;
  while (!words.empty()) {
    const size_t end = std::min(words.find(separator), words.size());
    parts.push_back(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return parts;
}

std::string environment_name(const Flag& flag) {
  std::string name = "LOCKSTEP_";
  for (const char c : flag.name) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

}  // namespace lockstep::trainers
