#include "trainers/options/flag_table.h"

#include <algorithm>
#include <list>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "engine/update/schedule_rows.h"

namespace lockstep::trainers {
namespace {

using enum FlagKind;
using enum FlagGroup;

using ranges::kFrom0;
using ranges::kFrom1;
using ranges::kMillion;
using ranges::kRates;
using ranges::kUnit;
using ranges::kUpToAMillion;

// One row per flag reads better than one field per line.
// clang-format off
constexpr Flag kDataFlags[] = {
    {.name = "data", .aliases = "--data-path", .brief = true, .takes = "DIR",
     .help = "data directory, also as plain argument DIR [built-in set]"},
    {.name = "dataset", .kind = kChoice, .brief = true, .initial = "auto",
     .choices = "auto|digits|shapes|mnist|fashion-mnist|cifar10|imagefolder|synthetic",
     .help = "auto: by the layout of DIR; without DIR the built-in set"},
    {.name = "dummy", .kind = kBool, .means = "--dataset=synthetic"},
    {.name = "workers", .aliases = "-j --nDataLoaderThread", .kind = kInt, .brief = true,
     .initial = "2", .range = {0, data::kMaxWorkers}, .help = "loader threads per rank"},
    {.name = "val-batch-size", .aliases = "--test-batch-size", .kind = kInt,
     .initial = {"250", "100"}, .range = {1, kMillion}, .help = "images per evaluation batch"},
    {.name = "tta", .kind = kChoice, .initial = "none", .choices = "none|flip|shift",
     .help = "average the logits of an image and its mirror image; shift: of moved ones too"},
    {.name = "normalize", .takes = "none|dataset|MEAN,STD", .initial = "dataset",
     .help = "(pixels/255 - MEAN)/STD; dataset: the data set's own constants"},
    {.name = "train-crop-size", .kind = kInt, .resnet_only = true, .initial = "224",
     .range = {1, 4096}, .help = "photos: side of the training crop"},
    {.name = "res-from", .kind = kInt, .resnet_only = true, .initial = "0", .range = {0, 4096},
     .help = "photos: side of the training crop in the first epochs; 0: train-crop-size"},
    {.name = "res-epochs", .resnet_only = true, .takes = "A:B",
     .help = "res-from: up to epoch A; it grows by multiples of 32 until epoch B"},
    {.name = "val-resize-size", .kind = kInt, .resnet_only = true, .initial = "256",
     .range = {1, 4096}, .help = "photos: short side before the center crop"},
    {.name = "val-crop-size", .kind = kInt, .resnet_only = true, .initial = "224",
     .range = {1, 4096}, .help = "photos: side of the center crop"},
    {.name = "interpolation", .kind = kChoice, .resnet_only = true, .initial = "bilinear",
     .choices = "bilinear|bicubic", .help = "photos: how they are resized for the center crop"},
    {.name = "train-interpolation", .kind = kChoice, .resnet_only = true, .initial = "bilinear",
     .choices = "bilinear|bicubic|random",
     .help = "photos: how training crops are resized; random: either, drawn for each"},
    {.name = "decode", .kind = kChoice, .resnet_only = true, .initial = "exact",
     .choices = "exact|shrunk",
     .help = "shrunk: decode large JPEGs at 1/2 to 1/8; faster, other pixels"},
    {.name = "cache-mb", .kind = kInt, .resnet_only = true, .initial = "0", .range = kUpToAMillion,
     .help = "memory per rank for decoded photos, in MiB"},
};

constexpr Flag kModelFlags[] = {
    {.name = "arch", .aliases = "-a --model", .kind = kChoice, .brief = true,
     .initial = {"convnet", "resnet50"},
     .choices = {"convnet|toy_net",
                 "resnet18|resnet34|resnet50|resnet101|resnet152|resnext50_32x4d|seresnet50|"
                 "resnet20|resnet32|resnet44|resnet56|alexnet|vgg16|vgg16_bn|ghostnet_100|"
                 "airbench94|airbench95|airbench96"},
     .help = "network"},
    {.name = "preset", .kind = kChoice, .brief = true,
     .choices = {"demo-baseline|demo-ddp|ddp-tricks",
                 "apex-imagenet|imagenet-main|torchvision-v2|rsb-a2|rsb-a3|ffcv-16|ffcv-32|ffcv-88|"
                 "cifar-94|cifar-95|cifar-96"},
     .help = "settings of a tutorial or recipe; flags and environment override them"},
    {.name = "pretrained", .takes = "FILE",
     .help = "start from the weights in this .safetensors, .pt or .pth"},
    {.name = "evaluate", .aliases = "-e --test-only", .kind = kBool, .initial = "false",
     .help = "evaluate the weights of --pretrained or --resume, then stop"},
    {.name = "save-logits", .takes = "FILE.safetensors",
     .help = "evaluate: write the logits and labels of the test images"},
    {.name = "class-names", .resnet_only = true, .takes = "FILE",
     .help = "evaluate photos: folder name of each output, a line each [as the weights record]"},
    {.name = "num-classes", .kind = kInt, .resnet_only = true, .range = {1, kMillion},
     .help = "outputs of the last layer [the data set's classes]"},
    {.name = "zero-init-residual", .kind = kBool, .resnet_only = true, .initial = "false",
     .help = "start each residual branch at 0"},
    {.name = "cifar-stem", .kind = kBool, .resnet_only = true, .initial = "false",
     .help = "resnet18, resnet34: 3x3 stem of stride 1, no max-pool"},
    {.name = "blur-pool", .kind = kBool, .resnet_only = true, .initial = "false",
     .help = "ResNets: blur the input of convolutions with a stride, except in the stem"},
};

constexpr Flag kOptimizerFlags[] = {
    {.name = "epochs", .kind = kFloat, .brief = true, .initial = {"3", "90"},
     .range = {1, kMaxEpochs}, .help = "passes over the data; the last of 9.9 is cut short"},
    {.name = "start-epoch", .kind = kInt, .initial = "0", .range = {0, kMaxEpochs - 1},
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
    {.name = "aug-repeats", .aliases = "--ra-reps", .kind = kInt, .initial = "1",
     .range = {0, 1000},
     .help = "show 1/N of the images in an epoch, each N times with different augmentation"},
    {.name = "batches-per-allreduce", .aliases = "--accum-steps", .kind = kInt, .initial = "1",
     .range = {1, kMaxMicroSteps}, .help = "micro-steps per optimizer step: gradients accumulate"},
    {.name = "opt", .kind = kChoice, .initial = "sgd", .choices = "sgd|adam|adamw|muon|lamb",
     .help = "optimizer"},
    {.name = "lr", .aliases = "--learning-rate", .kind = kFloat, .brief = true,
     .initial = {"0.02", "0.1"}, .range = kRates, .help = "learning rate"},
    {.name = "scale-lr", .kind = kBool, .initial = "false",
     .help = "multiply the learning rate by images per step / 256"},
    {.name = "lr-per-1024", .kind = kBool, .initial = "false",
     .help = "lr and weight decay are for 1,024 images per step and for any momentum"},
    {.name = "lr-scheduler", .aliases = "--lr-schedule", .kind = kChoice, .brief = true,
     .initial = {"const", "step"},
     .help = "learning-rate schedule"},
    {.name = "sched-on-updates", .kind = kBool, .initial = "true",
     .help = "cosine to triangular, warmup: move per epoch, not per step"},
    {.name = "lr-step-size", .kind = kInt, .initial = "30",
     .help = "epochs between two cuts of the rate"},
    {.name = "lr-milestones", .takes = "N,N,...",
     .help = "epochs at which the rate is cut, counted from 0 at warm-up's end"},
    {.name = "lr-gamma", .aliases = "--gamma", .kind = kFloat, .initial = "0.1",
     .help = "factor of a cut"},
    {.name = "poly-power", .kind = kFloat, .initial = "1",
     .help = "exponent of the remaining part of the run"},
    {.name = "min-lr", .aliases = "--lr-min", .kind = kFloat, .initial = "0", .range = kRates,
     .help = "the rate falls to X, in the unit of --lr"},
    {.name = "onecycle-pct-start", .kind = kFloat, .initial = "0.3",
     .help = "part of the run in which the rate rises"},
    {.name = "onecycle-div-factor", .kind = kFloat, .initial = "25",
     .help = "first rate = lr / X"},
    {.name = "onecycle-final-div-factor", .kind = kFloat, .initial = "1e4",
     .help = "last rate = first rate / X"},
    {.name = "triangular-start", .kind = kFloat, .initial = "0.2",
     .help = "first rate = X * lr"},
    {.name = "triangular-peak", .kind = kFloat, .initial = "0.23",
     .help = "part of the run in which the rate rises"},
    {.name = "triangular-end", .kind = kFloat, .initial = "0.07",
     .help = "the rate falls toward X * lr"},
    {.name = "plateau-on", .kind = kChoice, .initial = "loss", .choices = "loss|acc",
     .help = "the test metric that must improve"},
    {.name = "plateau-mode", .kind = kChoice, .choices = "min|max",
     .help = "the direction that improves the metric [loss: min, acc: max]"},
    {.name = "plateau-patience", .aliases = "--patience-epochs", .kind = kInt, .initial = "10",
     .help = "epochs without improvement before the rate is cut"},
    {.name = "plateau-threshold", .kind = kFloat, .initial = "1e-4",
     .help = "relative improvement that counts"},
    {.name = "warmup-epochs", .aliases = "--lr-warmup-epochs", .kind = kInt, .initial = "0",
     .help = "epochs of rising rate, before the schedule begins"},
    {.name = "warmup-method", .aliases = "--lr-warmup-method", .kind = kChoice, .initial = "linear",
     .choices = "linear|from-one|apex|frozen-cosine",
     .help = "linear: from warmup-decay; from-one: (i+1)/n; apex: (i+2)/n; frozen-cosine: 000's"},
    {.name = "warmup-decay", .aliases = "--lr-warmup-decay", .kind = kFloat, .initial = "0.01",
     .help = "linear, frozen-cosine warmup: first factor of the rate"},
    {.name = "warmup-prefix", .kind = kBool, .initial = "true",
     .help = "the schedule begins with the run; warm-up replaces its first epochs"},
    {.name = "lr-dry-run", .kind = kBool, .initial = "false",
     .help = "print the learning rates and stop"},
    {.name = "momentum", .kind = kFloat, .initial = "0.9", .range = kUnit,
     .help = "momentum of SGD and Muon"},
    {.name = "nesterov", .kind = kBool, .initial = "false", .help = "Nesterov momentum"},
    {.name = "muon-dtype", .kind = kChoice, .initial = "f32", .choices = "f32|bf16",
     .help = "Muon: type of the products in the Newton-Schulz steps"},
    {.name = "weight-decay", .aliases = "--wd", .kind = kFloat, .brief = true,
     .initial = {"0", "1e-4"}, .range = kRates, .help = "weight decay"},
    {.name = "bias-decay", .kind = kBool, .initial = "true",
     .help = "no weight decay for biases and batch-norm parameters"},
    {.name = "param-groups", .takes = "\"PATTERN lr=X wd=X epochs=N; ...\"",
     .help = "parameters by name: factors on lr and weight decay; trained in N epochs only"},
    {.name = "larc", .kind = kBool, .initial = "false",
     .help = "SGD: layer-wise rates from the norms of each parameter and its gradient"},
    {.name = "trust-coefficient", .kind = kFloat, .initial = "0.02", .range = kRates,
     .help = "larc: rate = X * norm of parameter / norm of gradient"},
    {.name = "larc-clip", .kind = kBool, .initial = "true",
     .help = "larc: the rates multiply lr; by default lr is their upper limit"},
    {.name = "lookahead", .kind = kBool, .initial = "false",
     .help = "Lookahead: slow weights beside the optimizer's fast ones"},
    {.name = "lookahead-k", .kind = kInt, .initial = "10", .range = {1, kMillion},
     .help = "lookahead: steps between two updates of the slow weights"},
    {.name = "lookahead-alpha", .kind = kFloat, .initial = "0.5", .range = kUnit,
     .help = "lookahead: step size of the slow weights; airbench: at the end, larger before"},
    {.name = "lookahead-variant", .kind = kChoice, .initial = "alphadl",
     .choices = "alphadl|paper|airbench",
     .help = "alphadl: slow weights change after steps 1, k+1, 2k+1; others: after k, 2k"},
    {.name = "ema", .aliases = "--model-ema-decay", .kind = kFloat, .initial = "0", .range = kUnit,
     .help = "keep and evaluate a moving average of the weights with decay X; 0: none"},
    {.name = "model-ema", .kind = kBool, .means = "--ema=0.9999"},
    {.name = "flip", .kind = kChoice, .choices = "none|random|alternating",
     .help = "flip images; alternating: swap each epoch [cifar10, shapes, photos: random]"},
    {.name = "crop-pad", .kind = kInt, .range = {0, 4096},
     .help = "pixels of padding before a crop of the image's size [4 for cifar10, shapes; else 0]"},
    {.name = "crop-pad-mode", .kind = kChoice, .choices = "zero|reflect",
     .help = "crop-pad: black pixels, or the image mirrored at its edge [zero]"},
    {.name = "auto-augment", .aliases = "--aa", .resnet_only = true,
     .takes = "none|ta_wide|ta_wide-bilinear|rand-m7-mstd0.5", .initial = "none",
     .help = "photos: TrivialAugment (ta_wide), or RandAugment as timm spells it"},
    {.name = "random-erase", .kind = kFloat, .initial = "0", .range = kUnit,
     .help = "probability that a box of a training image is erased, after normalization"},
    {.name = "cutout", .kind = kInt, .initial = "0", .range = {0, 4096},
     .help = "erase a square of NxN pixels in each training image; 0: none"},
    {.name = "mixup", .aliases = "--mixup-alpha", .kind = kFloat, .initial = "0",
     .range = {0, 1000},
     .help = "mix pairs of images and labels of a shard by Beta(X, X); 0: none"},
    {.name = "cutmix", .aliases = "--cutmix-alpha", .kind = kFloat, .initial = "0",
     .range = {0, 1000},
     .help = "mix pairs by a box of pixels; with mixup, each micro-step draws one; 0: none"},
    {.name = "drop-path", .kind = kFloat, .resnet_only = true, .initial = "0", .range = kUnit,
     .help = "residual networks: probability that an image skips the last block's branch"},
    {.name = "early-stopping", .kind = kInt, .initial = "0", .range = kUpToAMillion,
     .help = "stop after N epochs in a row with a test loss worse than the best; 0: never"},
    {.name = "early-stopping-delta", .kind = kFloat, .initial = "0", .range = {0, 1000},
     .help = "early stopping: a loss above the best loss minus X is worse"},
    {.name = "early-stopping-best", .kind = kBool, .initial = "true",
     .help = "early stopping: the epoch that stops the training never becomes the best"},
    {.name = "loss-div-batch", .kind = kBool, .initial = "false",
     .help = "divide the loss by the number of images once more, as tutorial 000's script does"},
    {.name = "label-smoothing", .kind = kFloat, .initial = "0", .range = kUnit,
     .help = "label smoothing"},
    {.name = "loss", .kind = kChoice, .initial = "ce", .choices = "ce|bce",
     .help = "training loss: cross-entropy of a softmax, or of a sigmoid for each class"},
    {.name = "bce-loss", .kind = kBool, .means = "--loss=bce"},
    {.name = "bce-target-thresh", .kind = kFloat, .range = kUnit,
     .help = "bce: smoothed and mixed targets above X count as 1, all others as 0"},
    {.name = "clip-grad-norm", .kind = kFloat, .range = kFrom0,
     .help = "largest norm of all gradients together; 0: no limit [0; lamb: 1]"},
    {.name = "seed", .kind = kInt, .brief = true, .initial = "1", .range = {0, 0x1p53},
     .help = "seed of initial weights, order and augmentation"},
    {.name = "seed-order", .kind = kInt, .range = {0, 0x1p53},
     .help = "seed of the order of images [--seed]"},
    {.name = "seed-weights", .kind = kInt, .range = {0, 0x1p53},
     .help = "seed of the initial weights [--seed]"},
};

constexpr Flag kPrecisionFlags[] = {
    {.name = "opt-level", .kind = kChoice, .brief = true, .initial = "O0", .choices = "O0|O1|O2|O3",
     .help = "O0: f32; O1: autocast; O2: f32 masters; O3: all 16-bit"},
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
    {.name = "shards", .kind = kInt, .brief = true, .range = {1, kMaxShards},
     .help = "shards per step; they determine the bits [ranks * threads]"},
    {.name = "bn-groups", .kind = kInt, .brief = true, .range = {1, kMaxShards},
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
     .help = "CUDA: launch kernels one by one, not a recorded graph"},
    {.name = "autotune", .kind = kBool, .initial = "false",
     .help = "CUDA: time cuDNN's engines for layers that the plan file lacks"},
    {.name = "plan-file", .takes = "FILE",
     .help = "CUDA: chosen cuDNN engines [RUN_DIR/plans.json with --autotune]"},
    {.name = "no-accel", .aliases = "--no-cuda", .kind = kBool, .means = "--device=cpu"},
    {.name = "threads", .kind = kInt, .brief = true, .range = {1, kMaxThreads},
     .help = "threads per rank [OMP_NUM_THREADS, else cores / ranks]"},
    {.name = "algorithm", .kind = kChoice, .initial = "tree",
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
     .range = {1, 86400}, .help = "without MPI: how long to wait for missing ranks"},
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
     .help = "after S seconds, say which ranks are missing, in which call; 0: never"},
    {.name = "flight", .kind = kBool, .initial = "true",
     .help = "keep no record of the ranks' events for lockstep flight"},
};

constexpr Flag kOutputFlags[] = {
    {.name = "output-dir", .aliases = "-o", .brief = true, .takes = "DIR",
     .help = "run directory [runs/<utc>-<arch>-n<ranks>]"},
    {.name = "name", .takes = "NAME", .help = "name of the run, whose directory is runs/NAME"},
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
     .help = "continue a run; auto: in -o, by default runs/latest"},
    {.name = "save-freq", .kind = kInt, .initial = "1", .range = kFrom1,
     .help = "epochs between checkpoints"},
    {.name = "save-steps", .kind = kInt, .range = kFrom1,
     .help = "steps between checkpoints, within epochs too"},
    {.name = "keep", .kind = kInt, .initial = "3", .range = kFrom1,
     .help = "newest checkpoints to keep, besides the best"},
    {.name = "keep-in-memory", .kind = kBool, .initial = "false",
     .help = "keep the state in /dev/shm too: scripts/run --max-restarts then loses no step"},
    {.name = "keep-in-memory-steps", .kind = kInt, .initial = "1", .range = kFrom1,
     .help = "keep-in-memory: steps between two states"},
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
    {.name = "print-config", .kind = kBool, .help = "print this run's flags as such a file, stop"},
    {.name = "report", .kind = kBool, .initial = "true", .help = "write no report.html at the end"},
    {.name = "help", .aliases = "-h", .kind = kBool, .brief = true, .help = "this page"},
    {.name = "help-all", .kind = kBool, .brief = true, .help = "every flag"},
    {.name = "completion", .kind = kChoice, .choices = "bash",
     .help = "print a script that completes flags in bash, and stop"},
    {.name = "version", .kind = kBool, .brief = true,
     .help = "version; with -v build and processor"},
    {.name = "check-build", .kind = kBool, .means = "--version"},
};

constexpr ScheduleFlag kScheduleFlags[] = {
    {"lr-scheduler", "kind"}, {"lr-step-size", "step_epochs"}, {"lr-milestones", "milestones"},
    {"lr-gamma", "gamma"}, {"poly-power", "power"}, {"min-lr", "min_factor"},
    {"onecycle-pct-start", "one_cycle.pct_start"}, {"onecycle-div-factor", "one_cycle.div"},
    {"onecycle-final-div-factor", "one_cycle.final_div"}, {"triangular-start", "triangular.start"},
    {"triangular-peak", "triangular.peak"}, {"triangular-end", "triangular.end"},
    {"plateau-on", "plateau.on_accuracy"}, {"plateau-mode", "plateau.upwards"},
    {"plateau-patience", "plateau.patience"}, {"plateau-threshold", "plateau.threshold"},
    {"warmup-epochs", "warmup_epochs"}, {"warmup-method", "warmup.method"},
    {"warmup-decay", "warmup.decay"},
};
// clang-format on

// Adds what the schedules' rows say.
Flag completed(Flag flag) {
  static std::list<std::string> texts;  // flags refer to them
  const auto found = std::ranges::find(kScheduleFlags, flag.name, &ScheduleFlag::flag);
  if (found == std::end(kScheduleFlags)) return flag;
  if (found->member == "kind") {
    flag.choices =
        texts.emplace_back(schedule_names("|", [](const auto&) { return true; })).c_str();
  }
  const std::string users =
      schedule_names(", ", [&](const ScheduleRow& row) { return row.uses(found->member); });
  if (!users.empty()) flag.help = texts.emplace_back(fmt::format("{}: {}", users, flag.help));
  for (const ScheduleMember& member : schedule_members()) {
    if (member.name == found->member && flag.range.max == 0) flag.range = member.range;
  }
  return flag;
}

std::vector<Flag> all_flags() {
  std::vector<Flag> flags;
  const auto append = [&](FlagGroup group, std::span<const Flag> rows) {
    for (Flag flag : rows) {
      flag.group = group;
      flags.push_back(completed(flag));
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

std::span<const ScheduleFlag> schedule_flags() {
  return kScheduleFlags;
}

std::span<const Flag> flag_table() {
  static const std::vector<Flag> flags = all_flags();
  return flags;
}

}  // namespace lockstep::trainers
