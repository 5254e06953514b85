#include <algorithm>
#include <ctime>

#include <fmt/chrono.h>

#include "core/error.h"
#include "core/words.h"
#include "engine/step/step_inputs.h"
#include "trainers/config/augmentation_config.h"
#include "trainers/config/config_from_flags.h"
#include "trainers/config/rank_machine.h"
#include "trainers/options/presets.h"

namespace lockstep::trainers {
namespace {

std::string text_or_empty(const Options& options, std::string_view name) {
  const Setting* setting = options.find(name);
  return setting == nullptr ? "" : setting->value;
}

// A folder from a variable yields to a data set that the command line names.
void refuse_idle_folder(const Options& options) {
  const Setting* const folder = options.find("data");
  const Setting& dataset = *options.find("dataset");
  const bool is_built_in = dataset.value == "digits" || dataset.value == "shapes";
  if (folder == nullptr || !is_built_in || folder->origin < dataset.origin) return;
  throw UsageError(fmt::format("--dataset {} and the data directory {} contradict each other",
                               dataset.value,
                               printable(folder->value)),
                   "that data set is built in, so nothing would be read from the directory",
                   "one of them alone");
}

void read_data(const Options& options, RunRequest& request) {
  request.data = text_or_empty(options, "data");
  request.dataset = dataset_name(options.program, options.text("dataset"), request.data);
  const bool on_disk = request.dataset == "mnist" || request.dataset == "fashion-mnist" ||
                       request.dataset == "cifar10";
  if (on_disk && request.data.empty()) {
    throw UsageError(fmt::format("--dataset {} needs a data directory", request.dataset),
                     "it is read from files, and training never downloads",
                     fmt::format("{} DIR --dataset {}, or --dataset {}, which is built in",
                                 name_of(options.program),
                                 request.dataset,
                                 built_in_dataset(options.program)));
  }
  refuse_idle_folder(options);
  request.normalize = parse_normalize(options.text("normalize"));
  request.workers = options.integer("workers");
  request.test.batch = options.integer("val-batch-size");
  request.test.views = value_of(kTestViewNames, options.text("tta"));
}

// "A:B" where least <= A <= B.
std::optional<std::pair<int64_t, int64_t>> parse_range(const std::string& text, int64_t least) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  const std::optional<int64_t> first = parse_int(text.substr(0, colon));
  const std::optional<int64_t> last = parse_int(text.substr(colon + 1));
  if (!first || !last || *first < least || *last < *first) return std::nullopt;
  return std::pair(*first, *last);
}

data::CropRamp train_ramp_of(const Options& options) {
  const int64_t from = options.integer("res-from");
  const int64_t to = options.integer("train-crop-size");
  const std::string text = text_or_empty(options, "res-epochs");
  if (from == 0 && (text.empty() || !options.given("res-epochs"))) return {};
  if (from == 0 || text.empty()) {
    throw UsageError("--res-from and --res-epochs belong together",
                     "training images grow from --res-from to --train-crop-size during "
                     "--res-epochs",
                     "--res-from 128 --res-epochs 11:13, or neither");
  }
  if (from > to) {
    throw UsageError(fmt::format("--res-from {} is more than --train-crop-size {}", from, to),
                     "training images grow from the first to the second",
                     fmt::format("--res-from {} or less", to));
  }
  const auto epochs = parse_range(text, 0);
  if (!epochs) {
    throw UsageError(fmt::format("--res-epochs {} names no epochs", printable(text)),
                     "it takes the last epoch of small images and the first one of large ones, "
                     "counted from 0",
                     "--res-epochs 11:13");
  }
  return {.from = from, .first = epochs->first, .last = epochs->second};
}

void read_photos(const Options& options, RunRequest& request) {
  // Where no data set is found, opening it says why.
  const bool may_be = request.dataset == "imagefolder" || request.dataset == "auto";
  for (const char* flag : {"train-crop-size",
                           "res-from",
                           "res-epochs",
                           "val-resize-size",
                           "val-crop-size",
                           "interpolation",
                           "train-interpolation",
                           "decode",
                           "cache-mb"}) {
    if (!options.given(flag) || may_be) continue;
    throw UsageError(fmt::format("--{} is for photos in class folders", flag),
                     fmt::format("the images of {} have one size", request.dataset),
                     "leave it out, or a DIR with photos in train and val");
  }
  request.photos = {.train_crop = options.integer("train-crop-size"),
                    .train_ramp = train_ramp_of(options),
                    .val_resize = options.integer("val-resize-size"),
                    .val_crop = options.integer("val-crop-size"),
                    .val_by = options.text("interpolation") == "bicubic"
                                  ? data::Interpolation::kBicubic
                                  : data::Interpolation::kBilinear,
                    .train_by = value_of(kInterpolationNames, options.text("train-interpolation")),
                    .shrink = options.text("decode") == "shrunk",
                    .cache_bytes = options.integer("cache-mb") << 20};
  if (request.photos.val_crop <= request.photos.val_resize) return;
  throw UsageError(fmt::format("--val-crop-size {} does not fit into --val-resize-size {}",
                               request.photos.val_crop,
                               request.photos.val_resize),
                   "the center is cut out of photos whose short side has been resized",
                   fmt::format("--val-resize-size {} or more", request.photos.val_crop));
}

void read_loss(const Options& options, RunRequest& request) {
  request.loss.label_smoothing = options.number("label-smoothing");
  request.loss.binary = options.text("loss") == "bce";
  if (options.find("bce-target-thresh") == nullptr) return;
  if (request.loss.binary) {
    request.loss.target_threshold = static_cast<float>(options.number("bce-target-thresh"));
  }
  if (request.loss.binary || !options.given("bce-target-thresh")) return;
  throw UsageError("--bce-target-thresh would change nothing",
                   "only --loss bce uses it",
                   "--loss bce; or leave it out");
}

void read_optimizer(const Options& options, RunRequest& request) {
  request.epochs = options.number("epochs");
  request.max_steps = options.maybe_integer("max-steps");
  const OptimizerConfig config = make_optimizer_config(options);
  request.optimizer = config.options();
  request.schedule = config.schedule;
  request.lr_dry_run = options.boolean("lr-dry-run");
  read_loss(options, request);
  request.augmentation = make_augmentation_config(options);
  request.loss.div_batch = options.boolean("loss-div-batch");
  const int64_t seed = options.integer("seed");
  const auto seed_of = [&](const char* flag) {
    return static_cast<uint64_t>(options.maybe_integer(flag).value_or(seed));
  };
  request.seeds = {.run = static_cast<uint64_t>(seed),
                   .order = seed_of("seed-order"),
                   .weights = seed_of("seed-weights")};
}

void read_early_stopping(const Options& options, RunRequest& request) {
  request.early_stopping = {.patience = options.integer("early-stopping"),
                            .delta = options.number("early-stopping-delta"),
                            .last_may_be_best = options.boolean("early-stopping-best")};
  if (request.early_stopping.patience > 0) return;
  for (const char* flag : {"early-stopping-delta", "early-stopping-best"}) {
    if (!options.given(flag)) continue;
    throw UsageError(fmt::format("--{} would change nothing", flag),
                     "only --early-stopping N uses it",
                     "--early-stopping 50; or leave it out");
  }
}

std::string logits_file_of(const Options& options) {
  const std::string file = text_or_empty(options, "save-logits");
  if (file.empty()) return file;
  if (!options.boolean("evaluate")) {
    throw UsageError("--save-logits needs --evaluate",
                     "it writes the logits of saved weights on the test images",
                     "-e and --pretrained FILE; or leave it out");
  }
  if (file.ends_with(".safetensors")) return file;
  throw UsageError(fmt::format("--save-logits {} names no .safetensors", printable(file)),
                   "logits are written in that format",
                   "--save-logits logits.safetensors");
}

std::string class_names_of(const Options& options) {
  const std::string file = text_or_empty(options, "class-names");
  if (file.empty() || options.boolean("evaluate")) return file;
  throw UsageError("--class-names needs --evaluate",
                   "a training numbers its class folders itself",
                   "-e and --pretrained FILE; or leave it out");
}

void read_checkpoints(const Options& options, RunRequest& request) {
  request.pretrained = text_or_empty(options, "pretrained");
  request.evaluate = options.boolean("evaluate");
  request.save_logits = logits_file_of(options);
  request.class_names = class_names_of(options);
  request.resume = text_or_empty(options, "resume");
  request.save_freq = options.integer("save-freq");
  request.save_steps = options.maybe_integer("save-steps");
  request.keep = options.integer("keep");
  if (options.boolean("keep-in-memory") || options.given("keep-in-memory-steps")) {
    request.kept_steps = options.integer("keep-in-memory-steps");
  }
  request.start_epoch = options.integer("start-epoch");
  if (request.evaluate && request.pretrained.empty() && request.resume.empty()) {
    throw UsageError("--evaluate needs weights",
                     "an untrained network is not worth evaluating",
                     "--pretrained FILE or --resume PATH beside it");
  }
  if (request.evaluate && !request.pretrained.empty() && !request.resume.empty() &&
      request.resume != "auto") {
    throw UsageError("--resume PATH and --pretrained contradict each other",
                     "both say which weights to evaluate",
                     "one of them alone");
  }
  if (request.resume == "auto" && request.overwrite) {
    throw UsageError("--resume auto and --overwrite contradict each other",
                     "one goes on with the run in --output-dir, the other removes it",
                     "one of them alone");
  }
  if (request.start_epoch >= request.epoch_count()) {
    throw UsageError(fmt::format("--start-epoch {} leaves nothing of --epochs {:g}",
                                 request.start_epoch,
                                 request.epochs),
                     "epochs are numbered from 0, and training ends before number --epochs",
                     fmt::format("--epochs {} or more", request.start_epoch + 1));
  }
}

// Refuses combinations in which a flag would wait for evaluations that never come.
void read_evaluations(const Options& options, RunRequest& request) {
  request.eval_freq = options.integer("eval-freq");
  request.no_eval = options.boolean("no-eval");
  const char* const watches = options.text("lr-scheduler") == "plateau" ? "--lr-scheduler plateau"
                              : options.integer("early-stopping") > 0   ? "--early-stopping"
                                                                        : nullptr;
  if (watches != nullptr && options.given("eval-freq") && request.eval_freq != 1) {
    throw UsageError("--eval-freq would change nothing",
                     fmt::format("{} needs the evaluation of each epoch", watches),
                     "one of them alone");
  }
  if (!request.no_eval) return;
  if (options.given("eval-freq")) {
    throw UsageError("--eval-freq and --no-eval contradict each other",
                     "one says when to evaluate, the other never does",
                     "one of them alone");
  }
  const bool has_views = options.given("tta") && request.test.views != TestViews::kOne;
  const bool averages = options.given("ema") && options.number("ema") > 0;
  const char* needs = request.evaluate     ? "--evaluate"
                      : watches != nullptr ? watches
                      : averages           ? "--ema"
                      : has_views          ? "--tta"
                                           : nullptr;
  if (needs == nullptr) return;
  throw UsageError(fmt::format("{} and --no-eval contradict each other", needs),
                   request.evaluate ? "one evaluates, the other never does"
                                    : fmt::format("{} works on the results of evaluations", needs),
                   watches != nullptr ? "one of them alone"
                                      : "one of them alone, or --eval-freq N to evaluate rarely");
}

// A preset's batch size or --sync-bn yields to a flag of the user's about the same thing.
void read_batch(const Options& options, RunRequest& request) {
  BatchRequest& batch = request.batch;
  batch.default_per_rank = options.integer("batch-size");
  if (options.given("batch-size")) batch.per_rank = batch.default_per_rank;
  if (!options.given("batch-size") || options.given("global-batch-size")) {
    batch.global = options.maybe_integer("global-batch-size");
  }
  batch.micro_steps = options.integer("batches-per-allreduce");
  batch.shards = options.maybe_integer("shards");
  batch.bn_groups = options.maybe_integer("bn-groups");
  batch.drop_last = options.boolean("drop-last");
  batch.repeats = std::max<int64_t>(1, options.integer("aug-repeats"));
  if (!options.boolean("sync-bn")) return;
  const int64_t groups = batch.bn_groups.value_or(1);
  if (options.given("sync-bn") && groups != 1) {
    throw UsageError(fmt::format("--sync-bn and --bn-groups {} contradict each other", groups),
                     "--sync-bn means one group over all ranks: --bn-groups 1",
                     fmt::format("--sync-bn or --bn-groups {}, not both", groups));
  }
  batch.bn_groups = groups;
}

// runs/latest is a link to the newest run.
std::string output_dir_of(const Options& options) {
  const Setting* const name = options.find("name");
  if (name == nullptr) return text_or_empty(options, "output-dir");
  const std::string shown = printable(name->value);
  if (options.given("output-dir")) {
    throw UsageError(fmt::format("--name {} and --output-dir contradict each other", shown),
                     "--name NAME means --output-dir runs/NAME",
                     "one of them alone");
  }
  const bool is_plain = shown == name->value && shown.find('/') == std::string::npos;
  if (is_plain && !shown.starts_with('.') && shown != "latest") return "runs/" + shown;
  throw UsageError(
      fmt::format("bad value: --name {}", shown),
      "it names a folder in runs/: plain ASCII without / or a dot in front, not latest",
      "--name first-try, or --output-dir DIR for any folder");
}

void read_tensorboard(const Options& options, RunRequest& request) {
  request.tensorboard = options.boolean("tensorboard");
  request.histograms = options.integer("histograms");
  if (request.tensorboard || request.histograms == 0) return;
  throw UsageError("--histograms and --no-tensorboard contradict each other",
                   "histograms are in TensorBoard's event files",
                   "one of them alone");
}

// An evaluation takes no step that they could show.
void refuse_training_outputs(const Options& options) {
  for (const char* name : {"trace", "csv", "histograms"}) {
    if (!options.given(name) || options.text(name) == "0") continue;
    throw UsageError(fmt::format("--{} and --evaluate contradict each other", name),
                     "it shows training steps, and --evaluate takes none",
                     "one of them alone");
  }
}

void read_trace(const Options& options, RunRequest& request) {
  const std::string text = text_or_empty(options, "trace");
  if (text.empty()) return;
  const auto steps = parse_range(text, 1);
  if (!steps) {
    throw UsageError(fmt::format("--trace {} names no steps", printable(text)),
                     "it takes the first step and the last one, counted from 1",
                     "--trace 20:30");
  }
  request.trace = TracedSteps{.first = steps->first, .last = steps->second};
}

void read_engines(const Options& options, RunRequest& request) {
  request.autotune = options.boolean("autotune");
  request.plan_file = text_or_empty(options, "plan-file");
  const bool asks = request.autotune || !request.plan_file.empty();
  if (!asks || request.device == Device::kCuda) return;
  throw UsageError(
      fmt::format("--{} is for --device cuda", request.autotune ? "autotune" : "plan-file"),
      "it chooses between cuDNN's engines, and convolutions on the CPU are oneDNN's",
      "leave it out, or --device cuda");
}

}  // namespace

RunRequest make_run_request(const Options& options) {
  RunRequest request;
  read_data(options, request);
  request.arch = options.text("arch");
  request.preset = text_or_empty(options, "preset");
  request.apex_lines = request.preset == "apex-imagenet";
  request.tricks_lines = request.preset == "ddp-tricks";
  if (options.program == Program::kTrainResnet) {
    request.main_py_lines = true;
    read_photos(options, request);
    request.classes = options.maybe_integer("num-classes");
    request.cifar_stem = options.boolean("cifar-stem");
    request.zero_init_residual = options.boolean("zero-init-residual");
    request.blur_pool = options.boolean("blur-pool");
    request.drop_path = options.number("drop-path");
  }
  read_optimizer(options, request);
  read_early_stopping(options, request);
  read_batch(options, request);
  request.threads = options.maybe_integer("threads");
  request.precision = make_precision_config(options);
  request.explain_precision = options.boolean("explain-precision");
  request.device = device_of(options);
  request.graph = options.boolean("graph");
  read_engines(options, request);
  request.exchange = make_exchange_config(options);
  request.stall_abort_s = options.integer("stall-abort");
  request.stall_warn_s = options.integer("stall-warn");
  request.flight = options.boolean("flight");
  request.rendezvous_timeout_s = options.integer("rendezvous-timeout");
  request.output_dir = output_dir_of(options);
  request.overwrite = options.boolean("overwrite");
  request.csv = text_or_empty(options, "csv");
  read_checkpoints(options, request);
  read_evaluations(options, request);
  if (request.evaluate) refuse_training_outputs(options);
  read_trace(options, request);
  request.print_freq = options.integer("print-freq");
  request.progress = options.text("progress");
  request.quiet = options.boolean("quiet");
  request.json = options.boolean("json");
  request.time_limit_s = options.maybe_integer("time-limit");
  request.anonymous = options.boolean("anonymous");
  read_tensorboard(options, request);
  request.report = options.boolean("report");
  return request;
}

bool ResolvedRun::runs_as_graph() const {
  return request.graph && fits_one_graph(request, batch, over_nccl());
}

std::string default_output_dir(const std::string& arch,
                               int64_t ranks,
                               std::chrono::system_clock::time_point start) {
  const std::time_t utc = std::chrono::system_clock::to_time_t(start);
  return fmt::format("runs/{:%Y%m%d-%H%M%S}-{}-n{}", fmt::gmtime(utc), arch, ranks);
}

}  // namespace lockstep::trainers
