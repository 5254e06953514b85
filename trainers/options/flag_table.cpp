#include "trainers/options/flag_table.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "core/words.h"

namespace lockstep::trainers {
namespace {

using enum FlagKind;
using enum FlagGroup;

constexpr double kMillion = 1e6;
constexpr FlagRange kFrom0{.min = 0, .max = 1e9};
constexpr FlagRange kFrom1{.min = 1, .max = 1e9};
constexpr FlagRange kUnit{.min = 0, .max = 1};

// One row a flag reads better than one field a line.
// clang-format off
constexpr Flag kDataFlags[] = {
    {.name = "data", .aliases = "--data-path", .brief = true, .takes = "DIR",
     .help = "data directory, also as plain argument DIR [built-in set]"},
    {.name = "dataset", .kind = kChoice, .brief = true, .initial = "auto",
     .choices = "auto|digits|shapes|mnist|fashion-mnist|cifar10|imagefolder|synthetic",
     .help = "auto: by the layout of DIR; without DIR the built-in set"},
    {.name = "dummy", .kind = kBool, .means = "--dataset=synthetic"},
    {.name = "workers", .aliases = "-j --nDataLoaderThread", .kind = kInt, .brief = true,
     .initial = "2", .range = {0, 256}, .help = "loader threads per rank"},
    {.name = "val-batch-size", .aliases = "--test-batch-size", .kind = kInt,
     .initial = {"250", "100"}, .range = {1, kMillion}, .help = "images per evaluation batch"},
    {.name = "tta", .kind = kChoice, .initial = "none", .choices = "none|flip|shift",
     .help = "evaluate the mean over views of an image: mirrored; also moved by a pixel"},
    {.name = "normalize", .takes = "none|dataset|MEAN,STD", .initial = "dataset",
     .help = "(pixels/255 - MEAN)/STD; dataset: the data set's own constants"},
    {.name = "train-crop-size", .kind = kInt, .resnet_only = true, .initial = "224",
     .range = {1, 4096}, .help = "photos: side of the training crop"},
    {.name = "val-resize-size", .kind = kInt, .resnet_only = true, .initial = "256",
     .range = {1, 4096}, .help = "photos: short side before the center crop"},
    {.name = "val-crop-size", .kind = kInt, .resnet_only = true, .initial = "224",
     .range = {1, 4096}, .help = "photos: side of the center crop"},
    {.name = "decode", .kind = kChoice, .resnet_only = true, .initial = "exact",
     .choices = "exact|shrunk",
     .help = "shrunk: decode large JPEGs at 1/2 to 1/8; faster, other pixels"},
    {.name = "cache-mb", .kind = kInt, .resnet_only = true, .initial = "0", .range = {0, kMillion},
     .help = "memory per rank for decoded photos, in MiB"},
};

constexpr Flag kModelFlags[] = {
    {.name = "arch", .aliases = "-a --model", .kind = kChoice, .brief = true,
     .initial = {"convnet", "resnet50"},
     .choices = {"convnet|toy_net",
                 "resnet18|resnet34|resnet50|resnet101|resnet152|resnet20|resnet32|resnet44|"
                 "resnet56|alexnet|vgg16|vgg16_bn|ghostnet_100"},
     .help = "network"},
    {.name = "preset", .kind = kChoice, .brief = true,
     .choices = {"demo-baseline|demo-ddp|ddp-tricks", "apex-imagenet|imagenet-main"},
     .help = "settings of a tutorial; flags and environment override them"},
    {.name = "pretrained", .takes = "FILE",
     .help = "start from the weights in this .safetensors, .pt or .pth"},
    {.name = "evaluate", .aliases = "-e --test-only", .kind = kBool, .initial = "false",
     .help = "evaluate the weights of --pretrained or --resume, then stop"},
    {.name = "num-classes", .kind = kInt, .resnet_only = true, .range = {1, kMillion},
     .help = "outputs of the last layer [the data set's classes]"},
    {.name = "zero-init-residual", .kind = kBool, .resnet_only = true, .initial = "false",
     .help = "start each residual branch at 0"},
    {.name = "cifar-stem", .kind = kBool, .resnet_only = true, .initial = "false",
     .help = "resnet18, resnet34: 3x3 stem of stride 1, no max-pool"},
};

constexpr Flag kOptimizerFlags[] = {
    {.name = "epochs", .kind = kInt, .brief = true, .initial = {"3", "90"}, .range = {1, kMillion},
     .help = "passes over the data"},
    {.name = "start-epoch", .kind = kInt, .initial = "0", .range = {0, kMillion},
     .help = "number of the first epoch"},
    {.name = "max-steps", .kind = kInt, .brief = true, .range = kFrom1,
     .help = "stop after N optimizer steps"},
    {.name = "dry-run", .kind = kBool, .means = "--max-steps=1"},
    {.name = "time-limit", .kind = kInt, .takes = "S", .range = kFrom1,
     .help = "stop and save S seconds after the start, as on a signal"},
    {.name = "batch-size", .aliases = "-b --b", .kind = kInt, .brief = true,
     .initial = {"64", "256"}, .range = {1, kMillion}, .help = "images per rank and micro-step"},
    {.name = "global-batch-size", .kind = kInt, .brief = true, .range = kFrom1,
     .help = "images per step over all ranks, in place of -b"},
    {.name = "drop-last", .kind = kBool, .initial = "false",
     .help = "leave out an epoch's last step where it would be short"},
    {.name = "batches-per-allreduce", .aliases = "--accum-steps", .kind = kInt, .initial = "1",
     .range = {1, kMillion}, .help = "micro-steps per optimizer step: gradients are accumulated"},
    {.name = "opt", .kind = kChoice, .initial = "sgd", .choices = "sgd|adam|adamw",
     .help = "optimizer"},
    {.name = "lr", .aliases = "--learning-rate", .kind = kFloat, .brief = true,
     .initial = {"0.02", "0.1"}, .range = {0, 1000}, .help = "learning rate"},
    {.name = "scale-lr", .kind = kBool, .initial = "false",
     .help = "multiply the learning rate by images per step / 256"},
    {.name = "lr-scheduler", .aliases = "--lr-schedule", .kind = kChoice, .brief = true,
     .initial = {"const", "step"},
     .choices = "const|step|multistep|cosine|linear|poly|onecycle|plateau",
     .help = "learning-rate schedule"},
    {.name = "sched-on-updates", .kind = kBool, .initial = "true",
     .help = "cosine, linear, poly, onecycle, warmup: move per epoch, not per step"},
    {.name = "lr-step-size", .kind = kInt, .initial = "30", .range = kFrom1,
     .help = "step: epochs between two cuts of the rate"},
    {.name = "lr-milestones", .takes = "N,N,...",
     .help = "multistep: epochs at which the rate is cut, counted from 0"},
    {.name = "lr-gamma", .aliases = "--gamma", .kind = kFloat, .initial = "0.1", .range = kUnit,
     .help = "step, multistep, plateau: factor of a cut"},
    {.name = "poly-power", .kind = kFloat, .initial = "1", .range = {0, 1000},
     .help = "poly: exponent of the remaining part of the run"},
    {.name = "onecycle-pct-start", .kind = kFloat, .initial = "0.3", .range = kUnit,
     .help = "onecycle: part of the run in which the rate rises"},
    {.name = "onecycle-div-factor", .kind = kFloat, .initial = "25", .range = {1, 1e9},
     .help = "onecycle: first rate = lr / X"},
    {.name = "onecycle-final-div-factor", .kind = kFloat, .initial = "1e4", .range = {1, 1e9},
     .help = "onecycle: last rate = first rate / X"},
    {.name = "plateau-on", .kind = kChoice, .initial = "loss", .choices = "loss|acc",
     .help = "plateau: the test metric that must improve"},
    {.name = "plateau-mode", .kind = kChoice, .choices = "min|max",
     .help = "plateau: the direction that improves the metric [loss: min, acc: max]"},
    {.name = "plateau-patience", .aliases = "--patience-epochs", .kind = kInt, .initial = "10",
     .range = {0, kMillion}, .help = "plateau: epochs without improvement before the rate is cut"},
    {.name = "plateau-threshold", .kind = kFloat, .initial = "1e-4", .range = kUnit,
     .help = "plateau: relative improvement that counts"},
    {.name = "warmup-epochs", .aliases = "--lr-warmup-epochs", .kind = kInt, .initial = "0",
     .range = {0, kMillion},
     .help = "epochs of rising rate; cosine, linear and poly use the rest of the run"},
    {.name = "warmup-method", .aliases = "--lr-warmup-method", .kind = kChoice, .initial = "linear",
     .choices = "linear|from-one|apex|frozen-cosine",
     .help = "linear: from warmup-decay*lr; step i of n: (i+1)/n; (i+2)/n; linear, then 000's"},
    {.name = "warmup-decay", .aliases = "--lr-warmup-decay", .kind = kFloat, .initial = "0.01",
     .range = kUnit, .help = "linear, frozen-cosine warmup: first factor of the rate"},
    {.name = "lr-dry-run", .kind = kBool, .initial = "false",
     .help = "print the learning rates and stop"},
    {.name = "momentum", .kind = kFloat, .initial = "0.9", .range = kUnit,
     .help = "momentum of SGD"},
    {.name = "nesterov", .kind = kBool, .initial = "false", .help = "Nesterov momentum"},
    {.name = "weight-decay", .aliases = "--wd", .kind = kFloat, .brief = true,
     .initial = {"0", "1e-4"}, .range = {0, 1000}, .help = "weight decay"},
    {.name = "bias-decay", .kind = kBool, .initial = "true",
     .help = "no weight decay for biases and batch-norm parameters"},
    {.name = "larc", .kind = kBool, .initial = "false",
     .help = "SGD: layer-wise rates from the norms of each parameter and its gradient"},
    {.name = "trust-coefficient", .kind = kFloat, .initial = "0.02", .range = {0, 1000},
     .help = "larc: rate = X * norm of parameter / norm of gradient"},
    {.name = "larc-clip", .kind = kBool, .initial = "true",
     .help = "larc: the rates multiply lr; by default lr is their upper limit"},
    {.name = "lookahead", .kind = kBool, .initial = "false",
     .help = "Lookahead: slow weights beside the optimizer's fast ones"},
    {.name = "lookahead-k", .kind = kInt, .initial = "10", .range = {1, kMillion},
     .help = "lookahead: steps between two updates of the slow weights"},
    {.name = "lookahead-alpha", .kind = kFloat, .initial = "0.5", .range = kUnit,
     .help = "lookahead: step size of the slow weights"},
    {.name = "lookahead-variant", .kind = kChoice, .initial = "alphadl", .choices = "alphadl|paper",
     .help = "slow weights change after steps 1, k+1, 2k+1, ...; paper: after k, 2k, ..."},
    {.name = "ema", .aliases = "--model-ema-decay", .kind = kFloat, .initial = "0", .range = kUnit,
     .help = "keep and evaluate a moving average of the weights with decay X; 0: none"},
    {.name = "model-ema", .kind = kBool, .means = "--ema=0.9999"},
    {.name = "flip", .kind = kChoice, .choices = "none|random|alternating",
     .help = "training images; alternating: each epoch the other side [random where usual]"},
    {.name = "crop-pad", .kind = kInt, .range = {0, 4096},
     .help = "pixels around images before a crop of their size [4 for cifar10, shapes; else 0]"},
    {.name = "crop-pad-mode", .kind = kChoice, .choices = "zero|reflect",
     .help = "crop-pad: black pixels, or the image mirrored at its edge [zero]"},
    {.name = "auto-augment", .aliases = "--aa", .kind = kChoice, .resnet_only = true,
     .initial = "none", .choices = "none|ta_wide",
     .help = "photos: one more random change to each, of 14 kinds and 31 strengths"},
    {.name = "random-erase", .kind = kFloat, .initial = "0", .range = kUnit,
     .help = "probability that a box of a training image is erased, after normalization"},
    {.name = "mixup", .aliases = "--mixup-alpha", .kind = kFloat, .initial = "0",
     .range = {0, 1000},
     .help = "mix pairs of images and labels of a shard by Beta(X, X); 0: none"},
    {.name = "cutmix", .aliases = "--cutmix-alpha", .kind = kFloat, .initial = "0",
     .range = {0, 1000},
     .help = "likewise by a box of pixels; beside mixup, each step draws which; 0: none"},
    {.name = "early-stopping", .kind = kInt, .initial = "0", .range = {0, kMillion},
     .help = "end after N epochs in a row with a worse test loss than the best; 0: never"},
    {.name = "early-stopping-delta", .kind = kFloat, .initial = "0", .range = {0, 1000},
     .help = "early stopping: losses above the best less X are worse"},
    {.name = "loss-div-batch", .kind = kBool, .initial = "false",
     .help = "divide losses once more, by the images of a BN group, in tests of a batch"},
    {.name = "label-smoothing", .kind = kFloat, .initial = "0", .range = kUnit,
     .help = "label smoothing"},
    {.name = "clip-grad-norm", .kind = kFloat, .initial = "0", .range = kFrom0,
     .help = "largest norm of all gradients together; 0: no limit"},
    {.name = "seed", .kind = kInt, .brief = true, .initial = "1", .range = {0, 0x1p53},
     .help = "of initial weights, order and augmentation"},
    {.name = "seed-order", .kind = kInt, .range = {0, 0x1p53},
     .help = "of the order of images alone [--seed]"},
    {.name = "seed-weights", .kind = kInt, .range = {0, 0x1p53},
     .help = "of the initial weights alone [--seed]"},
};

constexpr Flag kPrecisionFlags[] = {
    {.name = "opt-level", .kind = kChoice, .brief = true, .initial = "O0", .choices = "O0|O1|O2|O3",
     .help = "16 bits: none; products; all but f32 masters; all"},
    {.name = "amp", .kind = kBool, .means = "--opt-level=O1"},
    {.name = "fp16", .kind = kBool, .means = "--opt-level=O2"},
    {.name = "dtype", .kind = kChoice, .initial = "f16", .choices = "f16|bf16",
     .help = "O1 to O3: the 16-bit type"},
    {.name = "loss-scale", .aliases = "--static-loss-scale", .takes = "X|dynamic",
     .help = "loss scale [dynamic for O1 and O2 in f16, else 1]"},
    {.name = "dynamic-loss-scale", .kind = kBool, .means = "--loss-scale=dynamic"},
    {.name = "keep-batchnorm-fp32", .kind = kBool,
     .help = "batch-norm parameters in f32, whatever the level says"},
    {.name = "master-weights", .kind = kBool,
     .help = "f32 master weights, whatever the level says"},
    {.name = "explain-precision", .kind = kBool, .initial = "false",
     .help = "print the type of each class of tensors and operations, and stop"},
};

constexpr Flag kDistributedFlags[] = {
    {.name = "shards", .kind = kInt, .brief = true, .range = {1, 65536},
     .help = "parts of a step's images; fixes the bits [ranks * threads]"},
    {.name = "bn-groups", .kind = kInt, .brief = true, .range = {1, 65536},
     .help = "batch-norm groups per step [ranks]"},
    {.name = "sync-bn", .aliases = "--syncBN", .kind = kBool, .brief = true, .initial = "false",
     .help = "same as --bn-groups 1"},
    {.name = "parallel", .kind = kChoice, .initial = "ddp", .choices = "ddp|dp",
     .help = "ddp: ranks are processes; dp: threads of one, in place of DataParallel"},
    {.name = "devices", .kind = kInt, .range = {1, 1024},
     .help = "dp: number of ranks, which share the cores"},
    {.name = "device", .kind = kChoice, .brief = true, .initial = "auto",
     .choices = "auto|cpu|cuda", .help = "auto: a GPU where one is visible"},
    {.name = "graph", .kind = kBool, .initial = "true",
     .help = "CUDA: launch each kernel by itself, not the recorded step"},
    {.name = "autotune", .kind = kBool, .initial = "false",
     .help = "CUDA: time cuDNN's engines for layers that the plan file lacks"},
    {.name = "plan-file", .takes = "FILE",
     .help = "CUDA: chosen cuDNN engines [RUN_DIR/plans.json with --autotune]"},
    {.name = "no-accel", .aliases = "--no-cuda", .kind = kBool, .means = "--device=cpu"},
    {.name = "threads", .kind = kInt, .brief = true, .range = {1, 1024},
     .help = "threads per rank [OMP_NUM_THREADS, else cores / ranks]"},
    {.name = "algorithm", .kind = kChoice, .brief = true, .initial = "tree",
     .choices = "tree|ring|star|mpi|nccl|none",
     .help = "all-reduce; the same bits on any ranks: tree, star"},
    {.name = "transport", .kind = kChoice, .initial = "auto",
     .choices = "auto|shm|mpi|tcp|nccl|ipc|threads",
     .help = "auto: shm on one host, else mpi or tcp; between GPUs nccl, on one shared GPU ipc"},
    {.name = "dist-url", .takes = "env://|tcp://HOST:PORT|file://PATH",
     .help = "where ranks meet without MPI; the same for all [as the launcher says]"},
    {.name = "rank", .kind = kInt, .range = {-1, kMillion},
     .help = "number of this process among the ranks [as the launcher says]"},
    {.name = "world-size", .kind = kInt, .range = {-1, kMillion},
     .help = "number of ranks [as the launcher says]"},
    {.name = "local-rank", .kind = kInt, .range = {-1, kMillion},
     .help = "number of this process among the ranks of its host [as the launcher says]"},
    {.name = "rendezvous-timeout", .kind = kInt, .takes = "S", .initial = "300",
     .range = {1, 86400}, .help = "without MPI: how long ranks wait for those that have not come"},
    {.name = "bucket-cap-mb", .aliases = "--fusion-threshold-mb", .kind = kFloat, .initial = "25",
     .range = kFrom0, .help = "size of a gradient bucket, in MiB"},
    {.name = "first-bucket-mb", .kind = kFloat, .initial = "1", .range = kFrom0,
     .help = "size of the first bucket, in MiB [--bucket-cap-mb where only that is given]"},
    {.name = "message-size", .kind = kInt, .range = kFrom1,
     .help = "Apex: size of each gradient bucket, in elements"},
    {.name = "overlap", .kind = kBool, .initial = "true",
     .help = "sum gradients after the backward pass, not during it"},
    {.name = "delay-allreduce", .kind = kBool, .means = "--overlap=false"},
    {.name = "fp16-allreduce", .kind = kBool, .initial = "false",
     .help = "exchange gradients in f16"},
    {.name = "gradient-predivide-factor", .kind = kFloat, .initial = "1", .range = {1e-6, kMillion},
     .help = "divide gradients by X before the exchange, multiply by X after it"},
    {.name = "unused", .kind = kChoice, .initial = "error", .choices = "error|zero",
     .help = "a parameter that gets no gradient: an error, or a gradient of 0"},
    {.name = "find-unused-parameters", .kind = kBool, .means = "--unused=zero"},
    {.name = "check-ranks", .kind = kInt, .initial = "100", .range = kFrom0,
     .help = "compare the ranks' weights every N steps and each epoch; 0: each epoch"},
    {.name = "stall-abort", .kind = kInt, .takes = "S", .initial = "60", .range = {1, 86400},
     .help = "give up on a silent rank after S seconds"},
    {.name = "stall-warn", .kind = kInt, .takes = "S", .initial = "20", .range = {0, 86400},
     .help = "say who is waited for, and in what, after S seconds; 0: never"},
    {.name = "flight", .kind = kBool, .initial = "true",
     .help = "keep no record of what the ranks do, for lockstep flight"},
};

constexpr Flag kOutputFlags[] = {
    {.name = "output-dir", .aliases = "-o", .brief = true, .takes = "DIR",
     .help = "run directory [runs/<utc>-<arch>-n<ranks>]"},
    {.name = "name", .takes = "NAME", .help = "of the run: its directory is runs/NAME"},
    {.name = "anonymous", .kind = kBool, .initial = "false",
     .help = "name no host in the run directory"},
    {.name = "trace", .takes = "A:B", .help = "write a timeline of the steps A to B"},
    {.name = "csv", .takes = "FILE", .help = "write a row of figures for each epoch"},
    {.name = "overwrite", .kind = kBool, .brief = true, .initial = "false",
     .help = "replace the run in the run directory"},
    {.name = "print-freq", .aliases = "-p --log-interval", .kind = kInt, .initial = "10",
     .range = kFrom1, .help = "steps between two log lines"},
    {.name = "progress", .kind = kChoice, .initial = "auto", .choices = "auto|bar|line|json|none",
     .help = "how to show progress; json: the lines of metrics.jsonl on standard output"},
    {.name = "json", .kind = kBool, .initial = "false",
     .help = "print a summary of the run as JSON, and nothing else on standard output"},
    {.name = "color", .kind = kChoice, .initial = "auto", .choices = "auto|always|never",
     .help = "color of messages; auto: on a terminal, unless NO_COLOR is set"},
    {.name = "quiet", .aliases = "-q", .kind = kBool, .brief = true, .initial = "false",
     .help = "print results and errors only"},
    {.name = "verbose", .aliases = "-v", .kind = kBool, .initial = "false",
     .help = "with --version: build and processor too"},
    {.name = "resume", .brief = true, .takes = "PATH|auto",
     .help = "continue a run; auto: the one in --output-dir, if any"},
    {.name = "save-freq", .kind = kInt, .initial = "1", .range = kFrom1,
     .help = "epochs between checkpoints"},
    {.name = "save-steps", .kind = kInt, .range = kFrom1,
     .help = "steps between checkpoints, within epochs too"},
    {.name = "keep", .kind = kInt, .initial = "3", .range = kFrom1,
     .help = "newest checkpoints to keep, beside the best weights"},
    {.name = "keep-in-memory", .kind = kBool, .initial = "false",
     .help = "keep the state in /dev/shm too: scripts/run --max-restarts then loses no step"},
    {.name = "keep-in-memory-steps", .kind = kInt, .initial = "1", .range = kFrom1,
     .help = "the same, with N steps between two states"},
    {.name = "eval-freq", .kind = kInt, .initial = "1", .range = kFrom1,
     .help = "epochs between evaluations"},
    {.name = "no-eval", .kind = kBool, .initial = "false",
     .help = "never evaluate, not even at the end"},
    {.name = "tensorboard", .kind = kBool, .initial = "true",
     .help = "write no event files for TensorBoard"},
    {.name = "histograms", .kind = kInt, .initial = "0", .range = kFrom0,
     .help = "TensorBoard: weights and gradients every N steps; 0: none"},
    {.name = "config", .aliases = "-c", .takes = "FILE",
     .help = "read flags from lines \"lr = 0.1\" of TOML; flags and environment override them"},
    {.name = "print-config", .kind = kBool, .help = "print such a file for this run, and stop"},
    {.name = "report", .kind = kBool, .initial = "true",
     .help = "write no report.html at the end"},
    {.name = "help", .aliases = "-h", .kind = kBool, .brief = true, .help = "this page"},
    {.name = "help-all", .kind = kBool, .brief = true, .help = "every flag"},
    {.name = "completion", .kind = kChoice, .choices = "bash|zsh|fish",
     .help = "print a script that completes flags in this shell, and stop"},
    {.name = "man", .kind = kBool, .help = "print a manual page for man -l, and stop"},
    {.name = "version", .kind = kBool, .brief = true,
     .help = "version; with -v build and processor"},
    {.name = "check-build", .kind = kBool, .means = "--version"},
};
// clang-format on

std::vector<Flag> all_flags() {
  std::vector<Flag> flags;
  const auto append = [&](FlagGroup group, std::span<const Flag> rows) {
    for (Flag flag : rows) {
      flag.group = group;
      flags.push_back(flag);
    }
  };
  append(kData, kDataFlags);
  append(kModel, kModelFlags);
  append(kOptimizer, kOptimizerFlags);
  append(kPrecision, kPrecisionFlags);
  append(kDistributed, kDistributedFlags);
  append(kOutput, kOutputFlags);
  return flags;
}

}  // namespace

std::string_view name_of(Program program) {
  return program == Program::kTrainConvnet ? "train_convnet" : "train_resnet";
}

std::string_view name_of(FlagGroup group) {
  constexpr std::string_view kNames[kFlagGroups] = {
      "Data", "Model", "Optimizer", "Precision", "Distributed", "Output"};
  return kNames[static_cast<size_t>(group)];
}

std::span<const Flag> flag_table() {
  static const std::vector<Flag> flags = all_flags();
  return flags;
}

const Flag* find_flag(std::string_view dashed) {
  for (const Flag& flag : flag_table()) {
    if (dashed.starts_with("--") && dashed.substr(2) == flag.name) return &flag;
    if (std::ranges::count(split_words(flag.aliases, ' '), dashed) > 0) return &flag;
  }
  return nullptr;
}

bool only_prints(const Flag& flag) {
  constexpr std::string_view kPrinting[] = {
      "help", "help-all", "version", "check-build", "verbose", "print-config", "completion", "man"};
  return std::ranges::find(kPrinting, flag.name) != std::end(kPrinting);
}

bool is_ranks_own(const Flag& flag) {
  constexpr std::string_view kOwn[] = {"dist-url", "rank", "world-size", "local-rank"};
  return std::ranges::find(kOwn, flag.name) != std::end(kOwn);
}

std::string environment_name(const Flag& flag) {
  std::string name = "LOCKSTEP_";
  for (const char c : flag.name) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

}  // namespace lockstep::trainers
