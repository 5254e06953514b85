#include "trainers/options/foreign_flags.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/error.h"
#include "trainers/options/option_table.h"

namespace lockstep::trainers {
namespace {

constexpr bool kValue = true;
constexpr bool kRefused = true;

// clang-format off
constexpr ForeignFlag kForeignFlags[] = {
    {"multiprocessing-distributed", !kValue, !kRefused, "", "main.py",
     "a program is one rank and starts no others", "mpirun -np N starts N ranks"},
    {"gpu", kValue, !kRefused, "", "main.py",
     "ranks take devices in order", "--device chooses the kind, mpirun -np N the number of ranks"},
    {"dist-backend", kValue, !kRefused, "", "main.py",
     "the exchange between ranks is chosen here by --transport and --algorithm",
     "leave --transport at auto"},
    {"dist-url", kValue, kRefused, "mpi|tcp://", "main.py",
     "ranks find each other through MPI only", "mpirun -np N starts N ranks that know each other"},
    {"world-size", kValue, kRefused, "-1|0|1", "main.py",
     "the number of ranks comes from the launcher",
     "mpirun -np N, and --host a:4,b:4 for two hosts"},
    {"rank", kValue, kRefused, "-1|0", "main.py",
     "a rank's number comes from the launcher", "one mpirun -np N starts all ranks"},
    {"local-rank", kValue, kRefused, "-1|0", "Apex",
     "a rank's number comes from the launcher", "mpirun -np N starts N ranks"},
    {"nproc-per-node", kValue, kRefused, "", "torchrun",
     "it belongs to a launcher", "mpirun -np N starts N ranks"},
    {"nnodes", kValue, kRefused, "1", "torchrun",
     "it belongs to a launcher", "mpirun -np 8 --host a:4,b:4 uses two hosts"},
    {"node-rank", kValue, kRefused, "0", "torchrun",
     "it belongs to a launcher", "one mpirun starts the ranks of all hosts"},
    {"master-addr", kValue, !kRefused, "", "torchrun",
     "ranks find each other through MPI", "mpirun -np N needs no address"},
    {"master-port", kValue, !kRefused, "", "torchrun",
     "ranks find each other through MPI", "mpirun -np N needs no port"},
    {"local-world-size", kValue, !kRefused, "", "torchrun",
     "the number of ranks comes from the launcher", "mpirun -np N starts N ranks"},
    {"channels-last", !kValue, !kRefused, "", "Apex",
     "activations are channels-last always", "leave it out"},
    {"cudnn-benchmark", !kValue, !kRefused, "", "timm",
     "kernels are chosen by rule, so that bits repeat", "--autotune, which keeps what it finds"},
    {"pin-memory", !kValue, !kRefused, "", "timm",
     "the loader decides that itself", "leave it out"},
    {"pin-mem", !kValue, !kRefused, "", "timm",
     "the loader decides that itself", "leave it out"},
    {"cache-dataset", !kValue, !kRefused, "", "torchvision",
     "data sets that fit are held in memory anyway", "leave it out"},
    {"save-model", !kValue, !kRefused, "", "mnist/main.py",
     "the weights are saved always", "see checkpoints/ in the run directory"},
    {"experiment", kValue, !kRefused, "", "timm",
     "a run is known by its directory", "--output-dir DIR"},
    {"log-dir", kValue, kRefused, "", "Horovod",
     "all a run writes goes to one directory", "--output-dir DIR"},
    {"output", kValue, kRefused, "", "timm",
     "the flag has another name here", "--output-dir DIR"},
    {"train-dir", kValue, kRefused, "", "Horovod",
     "training and validation data lie in one directory", "--data DIR"},
    {"val-dir", kValue, kRefused, "", "Horovod",
     "training and validation data lie in one directory", "--data DIR"},
    {"base-lr", kValue, kRefused, "", "Horovod",
     "the learning rate is not multiplied by the number of ranks", "--lr X with the product"},
    {"use-adasum", !kValue, kRefused, "", "Horovod",
     "gradients are averaged, there is no Adasum", "leave it out"},
    {"model-ema-steps", kValue, kRefused, "1", "torchvision",
     "each step counts for the moving average of the weights", "--ema X, its decay by step"},
    {"norm-weight-decay", kValue, kRefused, "", "torchvision",
     "biases and batch norms are decayed alike", "--no-bias-decay to leave both out"},
    {"cutmix-alpha", kValue, kRefused, "0|0.0", "torchvision",
     "there is no cutmix", "--mixup X mixes whole images"},
    {"auto-augment", kValue, kRefused, "", "torchvision",
     "there are no learned augmentations", "leave it out"},
    {"random-erase", kValue, kRefused, "0|0.0", "torchvision",
     "there is no random erasing", "leave it out"},
    {"smoothing", kValue, kRefused, "", "timm",
     "the flag has another name here", "--label-smoothing X"},
    {"clip-grad", kValue, kRefused, "", "timm",
     "the flag has another name here", "--clip-grad-norm X"},
    {"sched", kValue, kRefused, "", "timm",
     "the flag has another name here", "--lr-scheduler NAME"},
    {"checkpoint-hist", kValue, kRefused, "", "timm",
     "the flag has another name here", "--keep N"},
};
// clang-format on

bool is_harmless(const ForeignFlag& flag, std::string_view value) {
  const auto values = split_words(flag.harmless, '|');
  return std::any_of(values.begin(), values.end(), [&](std::string_view harmless) {
    return value == harmless || (harmless.ends_with("://") && value.starts_with(harmless));
  });
}

}  // namespace

std::span<const ForeignFlag> foreign_flags() {
  return kForeignFlags;
}

const ForeignFlag* find_foreign_flag(std::string_view name) {
  const auto* const found = std::find_if(
      std::begin(kForeignFlags), std::end(kForeignFlags), [&](const ForeignFlag& flag) {
        return flag.name == name;
      });
  return found == std::end(kForeignFlags) ? nullptr : found;
}

std::string answer_foreign_flag(const ForeignFlag& flag, std::string_view value) {
  if (flag.refused && !is_harmless(flag, value)) {
    throw UsageError(fmt::format("--{}{}{} ({}) is not available here",
                                 flag.name,
                                 value.empty() ? "" : " ",
                                 value,
                                 flag.origin),
                     std::string(flag.reason),
                     std::string(flag.instead));
  }
  return fmt::format(
      "note: --{} ({}) changes nothing: {}; {}", flag.name, flag.origin, flag.reason, flag.instead);
}

}  // namespace lockstep::trainers
