#include <algorithm>

#include <fmt/core.h>

#include "core/error.h"
#include "core/words.h"
#include "trainers/options/flag_table.h"

namespace lockstep::trainers {
namespace {

constexpr bool kValue = true;
constexpr bool kRefused = true;
constexpr const char* kStarts = "mpirun -np N or torchrun --no-python starts N ranks";
constexpr const char* kHosts = "mpirun -np 8 --host a:4,b:4 or torchrun's own flags use two hosts";
constexpr const char* kLauncher = "ranks are started and numbered by the launcher";
constexpr const char* kMeet = "the launcher decides where ranks meet";
constexpr const char* kOtherName = "the flag has another name here";
constexpr const char* kOneFolder = "training and validation data are in one directory";
constexpr const char* kLeave = "leave it out";
constexpr const char* kInOrder =
    "a bucket travels as soon as it is full, in one order on all ranks";
constexpr const char* kRanksDevice = "a rank computes on its own device";

// clang-format off
constexpr ForeignFlag kForeignFlags[] = {
    {"multiprocessing-distributed", !kValue, !kRefused, "", "main.py", kLauncher, kStarts},
    {"gpu", kValue, !kRefused, "", "main.py", "ranks take the host's GPUs in order",
     "--device chooses the kind, mpirun -np N the number of ranks"},
    {"dist-backend", kValue, !kRefused, "", "main.py",
     "--transport and --algorithm choose the exchange", "leave --transport at auto"},
    {"nproc-per-node", kValue, kRefused, "", "torchrun", kLauncher, kStarts},
    {"nnodes", kValue, kRefused, "1", "torchrun", kLauncher, kHosts},
    {"node-rank", kValue, kRefused, "0", "torchrun", kLauncher, kHosts},
    {"master-addr", kValue, !kRefused, "", "torchrun", kMeet,
     "--dist-url tcp://HOST:PORT says it too"},
    {"master-port", kValue, !kRefused, "", "torchrun", kMeet,
     "--dist-url tcp://HOST:PORT says it too"},
    {"local-world-size", kValue, !kRefused, "", "torchrun", kLauncher, kStarts},
    {"port", kValue, !kRefused, "", "voxceleb_trainer", kMeet,
     "--dist-url tcp://HOST:PORT says it too"},
    {"distributed", !kValue, !kRefused, "", "voxceleb_trainer", kLauncher, kStarts},
    {"device-ids", kValue, !kRefused, "", "PyTorch", kRanksDevice, kStarts},
    {"output-device", kValue, !kRefused, "", "PyTorch", kRanksDevice, kStarts},
    {"gradient-average", !kValue, !kRefused, "", "Apex", "gradients are averaged", kLeave},
    {"no-gradient-average", !kValue, kRefused, "", "Apex", "gradients are averaged over ranks",
     "--lr times the ranks and --weight-decay divided by them: SGD then takes the same steps"},
    {"allreduce-trigger-params", kValue, !kRefused, "", "Apex", kInOrder,
     "--delay-allreduce waits for the end of the backward pass"},
    {"allreduce-always-fp32", !kValue, !kRefused, "", "Apex",
     "gradients are f32 at every --opt-level", "--fp16-allreduce sends them in f16"},
    {"num-allreduce-streams", kValue, !kRefused, "", "Apex", kInOrder, kLeave},
    {"retain-allreduce-buffers", !kValue, !kRefused, "", "Apex",
     "gradients always lie in their buckets", kLeave},
    {"gradient-as-bucket-view", !kValue, !kRefused, "", "PyTorch",
     "gradients always lie in their buckets", kLeave},
    {"static-graph", !kValue, !kRefused, "", "PyTorch",
     "buckets are planned before the first step", kLeave},
    {"broadcast-buffers", !kValue, !kRefused, "", "PyTorch",
     "rank 0's batch-norm statistics are evaluated and saved", kLeave},
    {"deterministic", !kValue, !kRefused, "", "Apex", "every run repeats its bits", kLeave},
    {"use-deterministic-algorithms", !kValue, !kRefused, "", "torchvision",
     "every run repeats its bits", kLeave},
    {"prof", kValue, kRefused, "-1", "Apex", "there is no profiling mode",
     "nsys profile: on CUDA each operation is an NVTX range"},
    {"channels-last", !kValue, !kRefused, "", "Apex", "activations are always channels-last",
     kLeave},
    {"cudnn-benchmark", !kValue, !kRefused, "", "timm",
     "engines are chosen by rule, so that bits repeat", "--autotune, which keeps what it finds"},
    {"pin-memory", !kValue, !kRefused, "", "timm", "the loader decides that", kLeave},
    {"pin-mem", !kValue, !kRefused, "", "timm", "the loader decides that", kLeave},
    {"cache-dataset", !kValue, !kRefused, "", "torchvision",
     "data sets that fit are held in memory", kLeave},
    {"save-model", !kValue, !kRefused, "", "mnist/main.py", "the weights are always saved",
     "see checkpoints/ in the run directory"},
    {"experiment", kValue, !kRefused, "", "timm", "a run is known by its directory",
     "--name NAME or --output-dir DIR"},
    {"log-wandb", !kValue, kRefused, "", "timm", "nothing is sent to other hosts",
     "metrics.jsonl and TensorBoard's events in the run directory, or --csv FILE"},
    {"log-dir", kValue, kRefused, "", "Horovod", "all files of a run go to one directory",
     "--output-dir DIR"},
    {"output", kValue, kRefused, "", "timm", kOtherName, "--output-dir DIR"},
    {"train-dir", kValue, kRefused, "", "Horovod", kOneFolder, "--data DIR"},
    {"val-dir", kValue, kRefused, "", "Horovod", kOneFolder, "--data DIR"},
    {"base-lr", kValue, kRefused, "", "Horovod",
     "the learning rate is not multiplied by the number of ranks", "--lr X with the product"},
    {"use-adasum", !kValue, kRefused, "", "Horovod", "gradients are averaged, without Adasum",
     kLeave},
    {"model-ema-steps", kValue, kRefused, "1", "torchvision",
     "every step counts for the moving average of the weights", "--ema X, its decay per step"},
    {"norm-weight-decay", kValue, kRefused, "", "torchvision",
     "biases and batch norms decay alike", "--no-bias-decay to leave both out"},
    {"smoothing", kValue, kRefused, "", "timm", kOtherName, "--label-smoothing X"},
    {"clip-grad", kValue, kRefused, "", "timm", kOtherName, "--clip-grad-norm X"},
    {"sched", kValue, kRefused, "", "timm", kOtherName, "--lr-scheduler NAME"},
    {"checkpoint-hist", kValue, kRefused, "", "timm", kOtherName, "--keep N"},
};
// clang-format on

bool is_harmless(const ForeignFlag& flag, std::string_view value) {
  return std::ranges::any_of(split_words(flag.harmless, '|'), [&](std::string_view harmless) {
    return value == harmless || (harmless.ends_with("://") && value.starts_with(harmless));
  });
}

}  // namespace

std::span<const ForeignFlag> foreign_flags() {
  return kForeignFlags;
}

std::string answer_negated_flag(const ForeignFlag& flag) {
  const std::string name = fmt::format("--no-{}", flag.name);
  if (const ForeignFlag* own = find_foreign_flag(name)) return answer_foreign_flag(*own, {});
  return fmt::format("note: {} ({}) changes nothing: {}", name, flag.origin, flag.reason);
}

const ForeignFlag* find_foreign_flag(std::string_view dashed) {
  if (!dashed.starts_with("--")) return nullptr;
  const auto* const found = std::ranges::find(kForeignFlags, dashed.substr(2), &ForeignFlag::name);
  return found == std::end(kForeignFlags) ? nullptr : found;
}

std::string answer_foreign_flag(const ForeignFlag& flag, std::string_view value) {
  if (flag.refused && !is_harmless(flag, value)) {
    throw UsageError(fmt::format("--{}{}{} ({}) is not available here",
                                 flag.name,
                                 value.empty() ? "" : " ",
                                 without_controls(value),
                                 flag.origin),
                     std::string(flag.reason),
                     std::string(flag.instead));
  }
  return fmt::format(
      "note: --{} ({}) changes nothing: {}; {}", flag.name, flag.origin, flag.reason, flag.instead);
}

}  // namespace lockstep::trainers
