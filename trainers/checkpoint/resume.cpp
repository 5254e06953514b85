#include "trainers/checkpoint/resume.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/core.h>

#include "core/cuda/device.h"
#include "core/error.h"
#include "core/words.h"
#include "data/torch_file/torch_file.h"
#include "engine/update/schedule.h"
#include "trainers/checkpoint/checkpoint_file.h"
#include "trainers/config/run_files.h"

namespace lockstep::trainers {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_missing(const std::string& path, const std::string& why) {
  throw CheckpointError(fmt::format("there is no checkpoint at {}", path),
                        why,
                        "--resume with a run directory or a stepN.safetensors in its checkpoints/");
}

// Returns the run directory that holds a checkpoint, as the user would write it; empty: none.
fs::path run_directory_of(const fs::path& model_file) {
  const fs::path folder = model_file.lexically_normal().parent_path();
  if (folder.filename() == kCheckpointsFolder && folder.has_parent_path())
    return folder.parent_path();
  const fs::path absolute = fs::absolute(model_file).lexically_normal().parent_path();
  return absolute.filename() == kCheckpointsFolder ? absolute.parent_path() : fs::path();
}

// last.safetensors is a link to a checkpoint; a state file stands for its pair.
fs::path model_file_of(const fs::path& file) {
  constexpr int kMostLinks = 40;  // as the kernel follows; there may be a circle
  fs::path real = file;
  for (int links = 0; links < kMostLinks && fs::is_symlink(real); ++links) {
    real = real.parent_path() / fs::read_symlink(real);
  }
  const std::optional<std::string> model = model_of_state(real.filename().string());
  return model ? real.parent_path() / *model : real;
}

// A run that goes on before them would replace them. beyond: the step from which it would.
void refuse_lone_models(const fs::path& folder, std::optional<int64_t> beyond) {
  const std::vector<StoredCheckpoint> models = list_lone_models(folder);
  if (models.empty() || (beyond && models.front().step <= *beyond)) return;
  const std::string newest = models.front().model_file.string();
  const std::string from_weights =
      fmt::format("--pretrained {} with another --output-dir to train from its weights", newest);
  throw CheckpointError(
      beyond ? fmt::format("cannot go on in {}: it holds a model of step {} alone, newer than the "
                           "checkpoint of step {}",
                           folder.string(),
                           models.front().step,
                           *beyond)
             : fmt::format("cannot go on in {}: its checkpoints hold models alone",
                           folder.parent_path().string()),
      fmt::format("the rest of the training state, such as {}, is missing",
                  state_file_of(newest).string()),
      beyond ? fmt::format("--resume {} to replace it, or {}",
                           (folder / model_file_name(*beyond)).string(),
                           from_weights)
             : from_weights + ", or --overwrite without --resume to remove them and start again");
}

fs::path newest_in(const fs::path& directory) {
  std::error_code error;
  const fs::path inner = directory / kCheckpointsFolder;
  const fs::path folder = fs::is_directory(inner, error) ? inner : directory;
  const std::vector<StoredCheckpoint> stored = list_checkpoints(folder);
  if (stored.empty()) refuse_missing(directory.string(), "no stepN.safetensors with its state");
  refuse_lone_models(folder, stored.front().step);
  return stored.front().model_file;
}

std::optional<ResumePoint> find_newest(const fs::path& output_dir,
                                       std::vector<std::string>& notes) {
  const size_t notes_before = notes.size();
  std::optional<SoundCheckpoint> found = newest_sound(output_dir / kCheckpointsFolder, notes);
  if (found) {
    refuse_lone_models(output_dir / kCheckpointsFolder,
                       step_of_model(found->model_file.filename().string()));
    return ResumePoint{.model_file = std::move(found->model_file),
                       .run_directory = output_dir,
                       .checkpoint = std::move(found->checkpoint)};
  }
  if (notes.size() > notes_before) {
    throw CheckpointError(
        fmt::format("no checkpoint in {} is sound", output_dir.string()),
        fmt::format("{} damaged; {}", notes.size() - notes_before, notes[notes_before]),
        "--overwrite without --resume to start that run again, or another --output-dir");
  }
  refuse_lone_models(output_dir / kCheckpointsFolder, std::nullopt);
  notes.push_back(fmt::format("note: --resume auto: there is no checkpoint in {}, a new run starts",
                              output_dir.string()));
  return std::nullopt;
}

// A flag that must stay, where it was given.
struct Given {
  std::string flag;
  std::optional<int64_t> value;
  int64_t before;
};

std::array<Given, 9> given_flags(const Options& options, const RunIdentity& before) {
  const auto given = [&](const char* name) {
    return options.given(name) ? options.maybe_integer(name) : std::nullopt;
  };
  const bool sync_bn = options.given("sync-bn") && options.boolean("sync-bn");
  return {{{"--global-batch-size", given("global-batch-size"), before.global_batch},
           {"--batches-per-allreduce", given("batches-per-allreduce"), before.micro_steps},
           {"--shards", given("shards"), before.shards},
           {"--bn-groups", given("bn-groups"), before.bn_groups},
           {"--sync-bn, or --bn-groups",
            sync_bn ? std::optional<int64_t>(1) : std::nullopt,
            before.bn_groups},
           {"--seed", given("seed"), static_cast<int64_t>(before.seeds.run)},
           {"--seed-order", given("seed-order"), static_cast<int64_t>(before.seeds.order)},
           {"--seed-weights", given("seed-weights"), static_cast<int64_t>(before.seeds.weights)},
           {"--start-epoch", given("start-epoch"), before.start_epoch}}};
}

[[noreturn]] void refuse_change(const std::string& what, const std::string& hint) {
  throw CheckpointError(what,
                        "a run goes on with the batch, shards, BN groups, seeds, network and data "
                        "that it began with",
                        hint + ", or --pretrained FILE to begin another run with its weights");
}

void check_flags(const Options& options, const RunIdentity& before, int64_t ranks) {
  for (const Given& given : given_flags(options, before)) {
    if (!given.value || *given.value == given.before) continue;
    refuse_change(
        fmt::format(
            "{} is {}, the checkpoint's run has {}", given.flag, *given.value, given.before),
        "leave it out");
  }
  if (!options.given("batch-size")) return;
  const int64_t batch = options.integer("batch-size") * ranks * before.micro_steps;
  if (batch == before.global_batch) return;
  refuse_change(fmt::format("-b {} makes {} images per step on {}, the checkpoint's run has {}",
                            options.integer("batch-size"),
                            batch,
                            counted(ranks, "rank"),
                            before.global_batch),
                "leave it out");
}

// It changes how many steps an epoch has.
bool kept_drop_last(const Options& options, const RunIdentity& before) {
  const auto found = before.settings.find("drop-last");
  const bool dropped = found != before.settings.end() && found->second == "true";
  if (options.given("drop-last") && options.boolean("drop-last") != dropped) {
    refuse_change(fmt::format("the checkpoint's run has {}--drop-last", dropped ? "" : "no "),
                  dropped ? "leave --no-drop-last out" : "leave it out");
  }
  return dropped;
}

// The number of times that an image is shown in a row changes it too.
int64_t kept_repeats(const Options& options, const RunIdentity& before) {
  const auto found = before.settings.find("aug-repeats");
  const std::string was = found != before.settings.end() ? found->second : "1";
  if (options.given("aug-repeats") && options.text("aug-repeats") != was) {
    refuse_change(fmt::format("--aug-repeats is {}, the checkpoint's run has {}",
                              options.text("aug-repeats"),
                              printable(was)),
                  "leave it out");
  }
  return std::max<int64_t>(1, parse_int(was).value_or(1));
}

// Whether the flag shapes the training. Not those that only say where a run ends or that it takes
// no step, nor those that RunIdentity has fields for.
bool shapes_training(const Flag& flag) {
  constexpr std::string_view kExcluded[] = {"start-epoch",
                                            "max-steps",
                                            "batch-size",
                                            "global-batch-size",
                                            "batches-per-allreduce",
                                            "early-stopping",
                                            "early-stopping-delta",
                                            "early-stopping-best",
                                            "seed",
                                            "seed-order",
                                            "seed-weights",
                                            "lr-dry-run"};
  if (flag.name == "preset") return true;
  if (flag.group != FlagGroup::kOptimizer && flag.group != FlagGroup::kPrecision) return false;
  return std::ranges::find(kExcluded, flag.name) == std::end(kExcluded);
}

}  // namespace

std::optional<ResumePoint> find_resume_point(const std::string& resume,
                                             const fs::path& output_dir,
                                             std::vector<std::string>& notes) {
  if (resume == "auto") return find_newest(output_dir, notes);
  std::error_code error;
  if (!fs::exists(resume, error)) {
    refuse_missing(resume, error ? error.message() : "there is no such file");
  }
  const bool directory = fs::is_directory(resume, error);
  const fs::path file = directory ? newest_in(resume) : model_file_of(resume);
  if (data::is_torch_file(file)) {
    throw CheckpointError(
        fmt::format("cannot resume from {}", resume),
        "it is a file of PyTorch: it holds no state of a run here",
        fmt::format("--pretrained {} to train from its weights or to evaluate them", resume));
  }
  return ResumePoint{.model_file = file,
                     .run_directory = run_directory_of(file),
                     .checkpoint = read_checkpoint(file)};
}

RunIdentity identity_of(const ResolvedRun& run,
                        const Options& options,
                        const std::string& data_digest,
                        const EvaluationRecord& evaluation) {
  RunIdentity identity{.program = std::string(name_of(options.program)),
                       .arch = run.request.arch,
                       .global_batch = run.batch.images,
                       .micro_steps = run.batch.micro_steps,
                       .shards = run.batch.shards,
                       .bn_groups = run.batch.bn_groups,
                       .seeds = run.request.seeds,
                       .start_epoch = run.request.start_epoch,
                       .data_digest = data_digest,
                       .environment = library_versions(),
                       .settings = {},
                       .evaluation = evaluation};
  if (run.request.device == Device::kCuda) {
    identity.environment["isa"] += ", cuda " + cuda::device_properties().architecture();
  }
  identity.environment.insert(run.cuda_libraries.begin(), run.cuda_libraries.end());
  if (!run.plan_choices.empty()) identity.environment["plan_choices"] = run.plan_choices;
  identity.environment["wire"] = name_of(run.request.exchange.wire);
  const ExchangeConfig& exchange = run.request.exchange;
  identity.environment["algorithm"] = exchange.keeps_bits() ? "tree" : algorithm_name(exchange);
  identity.environment["predivide"] = fmt::format("{}", run.request.exchange.predivide);
  for (const ResolvedFlag& flag : options.resolved()) {
    if (shapes_training(*find_flag("--" + flag.name))) identity.settings[flag.name] = flag.value;
  }
  // A run that goes on has these from its checkpoint, whatever the flags' defaults are.
  const auto set = [&](const char* name, const std::string& value) {
    const auto found = identity.settings.find(name);
    if (found != identity.settings.end()) found->second = value;
  };
  set("drop-last", run.batch.drop_last ? "true" : "false");
  set("aug-repeats", std::to_string(run.batch.repeats));
  return identity;
}

std::optional<std::string> note_on_epochs(const ResolvedRun& run,
                                          int64_t steps_per_epoch,
                                          const CheckpointRecord& before) {
  const auto recorded = before.run.settings.find(kEpochs);
  if (recorded == before.run.settings.end()) return std::nullopt;  // by an earlier program
  const double now = run.request.epochs;
  const double was = parse_float(recorded->second).value_or(now);
  if (was == now || !(was >= 1 && was <= kMaxEpochs)) return std::nullopt;
  const std::string what =
      fmt::format("note: epochs is {:g}, was {:g} in the checkpoint's run: ", now, was);
  const OptimizerOptions& optimizer = run.request.optimizer;
  const auto schedule_of = [&](double epochs) {
    Schedule schedule(
        run.request.schedule, optimizer.base_lr(run.batch.images), epochs, steps_per_epoch);
    schedule.restore(before.position.schedule);
    return schedule;
  };
  const Schedule ours = schedule_of(now);
  const Schedule theirs = schedule_of(was);
  const int64_t next = before.position.applied;
  if (ours.lr(next) != theirs.lr(next)) {
    return what +
           fmt::format("the rate goes on at {:.7g}, not at {:.7g}", ours.lr(next), theirs.lr(next));
  }
  const int64_t end = std::max(next, run.request.steps(steps_per_epoch));
  const int64_t first = *std::ranges::partition_point(
      std::views::iota(next, end + 1),
      [&](int64_t step) { return step < end && ours.lr(step) == theirs.lr(step); });
  if (first < end) return what + fmt::format("the rate differs from step {} on", first + 1);
  const bool ends_at_slow_weights =
      optimizer.lookahead && optimizer.lookahead->variant == nn::LookaheadVariant::kAirbench;
  if (!ends_at_slow_weights) return std::nullopt;
  return what + "Lookahead's slow weights move otherwise";
}

std::vector<std::string> notes_on_resume(const RunIdentity& now,
                                         const ResolvedRun& run,
                                         int64_t steps_per_epoch,
                                         const CheckpointRecord& before) {
  std::vector<std::string> notes;
  if (const auto note = note_on_epochs(run, steps_per_epoch, before)) notes.push_back(*note);
  for (const std::string& difference : differences(now, before.run)) {
    notes.push_back(fmt::format(
        "note: {} in the checkpoint's run: bits may differ from an uninterrupted one", difference));
  }
  return notes;
}

RunRequest request_of_resumed_run(RunRequest request,
                                  const Options& options,
                                  const std::string& data_digest,
                                  const RunIdentity& before,
                                  int64_t ranks) {
  check_flags(options, before, ranks);
  if (data_digest != before.data_digest) {
    refuse_change(fmt::format("the data have digest {}, those of the checkpoint's run {}",
                              data_digest,
                              printable(before.data_digest)),
                  "the same --data, --dataset, sizes and --decode");
  }
  if (ranks > before.shards) {
    throw UsageError(
        fmt::format("{} ranks are too many for the checkpoint's run", ranks),
        fmt::format("it has {} shards, and each rank needs at least one", before.shards),
        fmt::format("at most {} ranks", before.shards));
  }
  request.batch = {.global = before.global_batch,
                   .micro_steps = before.micro_steps,
                   .shards = before.shards,
                   .bn_groups = before.bn_groups,
                   .drop_last = kept_drop_last(options, before),
                   .repeats = kept_repeats(options, before)};
  request.seeds = before.seeds;
  request.start_epoch = before.start_epoch;
  return request;
}

}  // namespace lockstep::trainers
