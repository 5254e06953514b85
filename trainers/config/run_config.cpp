#include "trainers/config/run_config.h"

#include <algorithm>
#include <thread>

#include <fmt/chrono.h>
#include <sched.h>

#include "core/error.h"
#include "core/shards.h"
#include "core/words.h"
#include "trainers/config/device_choice.h"
#include "trainers/config/normalize_flag.h"
#include "trainers/options/presets.h"

namespace lockstep::trainers {
namespace {

std::string text_or_empty(const Options& options, std::string_view name) {
  const Setting* setting = options.find(name);
  return setting == nullptr ? "" : setting->value;
}

void read_data(const Options& options, RunConfig& config) {
  config.data = text_or_empty(options, "data");
  config.dataset = dataset_name(options.program, options.text("dataset"), config.data);
  const bool on_disk =
      config.dataset == "mnist" || config.dataset == "fashion-mnist" || config.dataset == "cifar10";
  if (on_disk && config.data.empty()) {
    throw UsageError(fmt::format("--dataset {} needs a data directory", config.dataset),
                     "it is read from files, and training never downloads",
                     fmt::format("{} DIR --dataset {}, or --dataset {}, which is built in",
                                 name_of(options.program),
                                 config.dataset,
                                 built_in_dataset(options.program)));
  }
  config.normalize = parse_normalize(options.text("normalize"));
  config.workers = options.integer("workers");
  config.val_batch_size = options.integer("val-batch-size");
}

void read_photos(const Options& options, RunConfig& config) {
  // Where no data set is found, opening it says why.
  const bool may_be = config.dataset == "imagefolder" || config.dataset == "auto";
  for (const char* flag :
       {"train-crop-size", "val-resize-size", "val-crop-size", "decode", "cache-mb"}) {
    if (!options.given(flag) || may_be) continue;
    throw UsageError(fmt::format("--{} is for photos in class folders", flag),
                     fmt::format("the images of {} have one size", config.dataset),
                     fmt::format("leave it out, or a DIR with photos in train and val"));
  }
  config.photos = {.train_crop = options.integer("train-crop-size"),
                   .val_resize = options.integer("val-resize-size"),
                   .val_crop = options.integer("val-crop-size"),
                   .shrink = options.text("decode") == "shrunk",
                   .cache_bytes = options.integer("cache-mb") << 20};
  if (config.photos.val_crop <= config.photos.val_resize) return;
  throw UsageError(fmt::format("--val-crop-size {} does not fit into --val-resize-size {}",
                               config.photos.val_crop,
                               config.photos.val_resize),
                   "the center is cut out of photos whose short side has been resized",
                   fmt::format("--val-resize-size {} or more", config.photos.val_crop));
}

void read_optimizer(const Options& options, RunConfig& config) {
  config.epochs = options.integer("epochs");
  config.max_steps = options.maybe_integer("max-steps");
  config.optimizer = make_optimizer_config(options);
  config.lr_dry_run = options.boolean("lr-dry-run");
  config.label_smoothing = options.number("label-smoothing");
  config.mixup = options.number("mixup");
  config.seed = static_cast<uint64_t>(options.integer("seed"));
}

void read_checkpoints(const Options& options, RunConfig& config) {
  config.pretrained = text_or_empty(options, "pretrained");
  config.evaluate = options.boolean("evaluate");
  config.resume = text_or_empty(options, "resume");
  config.save_freq = options.integer("save-freq");
  config.save_steps = options.maybe_integer("save-steps");
  config.keep = options.integer("keep");
  config.eval_freq = options.integer("eval-freq");
  config.start_epoch = options.integer("start-epoch");
  if (config.evaluate && config.pretrained.empty() && config.resume.empty()) {
    throw UsageError("--evaluate needs weights",
                     "untrained ones have nothing to show",
                     "--pretrained FILE or --resume PATH beside it");
  }
  if (config.resume == "auto" && config.overwrite) {
    throw UsageError("--resume auto and --overwrite contradict each other",
                     "one goes on with the run in --output-dir, the other removes it",
                     "one of them alone");
  }
  if (config.start_epoch >= config.epochs) {
    throw UsageError(
        fmt::format(
            "--start-epoch {} leaves nothing of --epochs {}", config.start_epoch, config.epochs),
        "epochs are numbered from 0, and training ends before number --epochs",
        fmt::format("--epochs {} or more", config.start_epoch + 1));
  }
}

// A preset's batch size or --sync-bn gives way to what the user says about the same thing.
void read_batch_and_groups(const Options& options, RunConfig& config) {
  config.default_batch_size = options.integer("batch-size");
  if (options.given("batch-size")) config.asked.batch_size = config.default_batch_size;
  if (!options.given("batch-size") || options.given("global-batch-size")) {
    config.asked.global_batch_size = options.maybe_integer("global-batch-size");
  }
  config.micro_steps = options.integer("batches-per-allreduce");
  config.asked.shards = options.maybe_integer("shards");
  config.asked.bn_groups = options.maybe_integer("bn-groups");
  config.asked.threads = options.maybe_integer("threads");
  if (!options.boolean("sync-bn")) return;
  const int64_t groups = config.asked.bn_groups.value_or(1);
  if (options.given("sync-bn") && groups != 1) {
    throw UsageError(fmt::format("--sync-bn and --bn-groups {} contradict each other", groups),
                     "--sync-bn means one group over all ranks: --bn-groups 1",
                     fmt::format("--sync-bn or --bn-groups {}, not both", groups));
  }
  config.asked.bn_groups = groups;
}

void read_engines(const Options& options, RunConfig& config) {
  config.autotune = options.boolean("autotune");
  config.plan_file = text_or_empty(options, "plan-file");
  const bool asks = config.autotune || !config.plan_file.empty();
  if (!asks || config.device == Device::kCuda) return;
  throw UsageError(
      fmt::format("--{} is for --device cuda", config.autotune ? "autotune" : "plan-file"),
      "it chooses between cuDNN's engines, and convolutions on the CPU are oneDNN's",
      "leave it out, or --device cuda");
}

}  // namespace

RunConfig make_run_config(const Options& options) {
  RunConfig config;
  read_data(options, config);
  config.arch = options.text("arch");
  config.preset = text_or_empty(options, "preset");
  config.apex_lines = config.preset == "apex-imagenet";
  if (options.program == Program::kTrainResnet) {
    config.main_py_lines = true;
    read_photos(options, config);
    config.classes = options.maybe_integer("num-classes");
    config.cifar_stem = options.boolean("cifar-stem");
    config.zero_init_residual = options.boolean("zero-init-residual");
  }
  read_optimizer(options, config);
  read_batch_and_groups(options, config);
  config.precision = make_precision_config(options);
  config.explain_precision = options.boolean("explain-precision");
  config.device = device_of(options);
  config.graph = options.boolean("graph");
  read_engines(options, config);
  config.exchange = make_exchange_config(options);
  config.stall_abort_s = options.integer("stall-abort");
  config.output_dir = text_or_empty(options, "output-dir");
  config.overwrite = options.boolean("overwrite");
  read_checkpoints(options, config);
  config.print_freq = options.integer("print-freq");
  config.progress = options.text("progress");
  config.quiet = options.boolean("quiet");
  return config;
}

bool runs_as_graph(const RunConfig& config) {
  const bool gathers = any_group_spans_ranks(config.shards, config.bn_groups, config.ranks) &&
                       config.exchange.algorithm == Algorithm::kNone;
  const bool without_host = config.ranks == 1 || (config.over_nccl() && !gathers);
  return config.device == Device::kCuda && config.graph && without_host && config.micro_steps == 1;
}

HostShare host_share(int64_t ranks_on_host) {
  HostShare host;
  host.host_cores = std::max<int64_t>(1, std::thread::hardware_concurrency());
  host.affinity_cores = host.host_cores;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) host.affinity_cores = CPU_COUNT(&mask);
  host.ranks_on_host = ranks_on_host;
  return host;
}

int64_t threads_per_rank(const RunConfig& config, const char* omp_threads, const HostShare& host) {
  if (config.asked.threads) return *config.asked.threads;
  if (omp_threads != nullptr && *omp_threads != '\0') {
    const std::string_view outermost = split_words(omp_threads, ',').front();
    const auto threads = parse_int(outermost);
    if (!threads || *threads < 1 || *threads > 1024) {
      throw UsageError(fmt::format("bad value: OMP_NUM_THREADS={}", omp_threads),
                       "it sets the threads a rank, a whole number from 1 to 1024",
                       "unset OMP_NUM_THREADS, or --threads N");
    }
    return *threads;
  }
  return std::max<int64_t>(1, std::min(host.affinity_cores, host.host_cores / host.ranks_on_host));
}

std::string default_output_dir(const RunConfig& config, std::time_t utc) {
  return fmt::format("runs/{:%Y%m%d-%H%M%S}-{}-n{}", fmt::gmtime(utc), config.arch, config.ranks);
}

}  // namespace lockstep::trainers
