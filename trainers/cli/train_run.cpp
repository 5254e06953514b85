#include "trainers/cli/train_run.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <utility>

#include <fmt/core.h>

#include "comm/gather.h"
#include "comm/handshake.h"
#include "comm/replicas.h"
#include "core/digest.h"
#include "engine/state/state_tensors.h"
#include "engine/update/weights.h"
#include "kernels/support/onednn/version.h"
#include "trainers/checkpoint/starting_point.h"
#include "trainers/cli/compare_ranks.h"
#include "trainers/cli/final_report.h"
#include "trainers/cli/gradient_route.h"
#include "trainers/cli/run_console.h"
#include "trainers/cli/run_data.h"
#include "trainers/cli/start_warnings.h"
#include "trainers/cli/weight_soundness.h"
#include "trainers/config/rank_machine.h"
#include "trainers/config/run_request.h"
#include "trainers/loop/fit_to_images.h"
#include "trainers/loop/run_observer.h"
#include "trainers/loop/save_logits.h"
#include "trainers/model/models.h"
#include "trainers/planner/memory_plan.h"
#include "trainers/planner/run_engines.h"
#include "trainers/report/errors.h"
#include "trainers/report/flag_advice.h"
#include "trainers/report/print.h"
#include "trainers/report/process.h"
#include "trainers/report/run_report.h"
#include "trainers/report/tutorial_lines.h"

namespace lockstep::trainers {
namespace {

// A run that all ranks agree on.
class Run {
 public:
  struct Parts {
    const Job& job;
    ResolvedRun& run;
    const RunData& data;
    const ModelOptions& network;
    const GradientRoute& route;
    const SettledEngines& engines;
    StartingPoint& start;
    const std::optional<Fault>& fault;
    Stream& stream;
    Console& console;
    int64_t pool_bytes;  // StepInputs'
  };

  Run(const Parts& parts, RunRecord record)
      : parts_(parts), ranks_(parts_.job.ranks), record_(std::move(record)) {
    record_.argv = parts_.job.argv;
    record_.flags = parts_.start.options().resolved();
    record_.data_digest = parts_.data.digest;
    record_.left_out = left_out_of(parts_.data);
    RankPlace place = this_place();
    place.local_rank = parts_.job.launch.local_rank;
    place.device = name_of(parts_.run.request.device);
    places_ = gather_places(ranks_, place);
    if (parts_.run.request.anonymous) {
      number_hosts(places_);
      show_host_as(places_[static_cast<size_t>(ranks_.rank())].host);
    }
    describe_run(parts_.run, places_, record_);
  }

  // Returns what the weights' file says about them; empty without one. The other ranks get the
  // weights before they use them.
  std::vector<std::string> load_weights(nn::Module& model) {
    for (const std::string& note : notes()) parts_.console.warn(note);
    std::vector<std::string> loaded;
    run_or_end_all_ranks(ranks_, [&] {
      if (!is_rank0()) return;
      loaded = parts_.start.load(model);
      if (loaded.empty()) fit_to_images(parts_.run.request, *parts_.data.sets.train, model);
    });
    return loaded;
  }

  ExitCode train(nn::Module& model, const std::vector<std::string>& loaded) {
    const std::optional<ReplayPlan>& plan = parts_.job.replay;
    const TrainingParts parts = training_parts(model);
    RunObserver observer(parts);
    Training training(parts, training_plan(parts), observer);
    restore_optimizer(training);
    if (plan) return replay(*plan, training, observer);
    open_keeper();
    open_directory(training.step().buckets(), training.range());
    announce(model, loaded);
    std::optional<CheckpointWriter> checkpoints;
    if (directory_) checkpoints.emplace(writer_options(), identity(), parts_.console);
    const double start_s = seconds_since_process_start();
    observer.open({.directory = directory_.get(),
                   .csv = csv_ ? &*csv_ : nullptr,
                   .record = directory_ ? &record_ : nullptr,
                   .saves = {.checkpoints = checkpoints ? &*checkpoints : nullptr,
                             .keeper = keeper_ ? &*keeper_ : nullptr}},
                  training);
    training.share_weights();
    TrainingResult result;
    try {
      result = training.run();
    } catch (const DivergedError& error) {  // on all ranks
      observer.give_up();
      end_without_figures(error.code());
      throw;
    }
    observer.end(result);
    if (parts_.run.request.apex_lines) {
      parts_.console.info(apex_end_line(seconds_since_process_start() - start_s));
    }
    mistakes_ = observer.mistakes();
    return end(result, model);
  }

  ExitCode evaluate(nn::Module& model, const std::vector<std::string>& loaded) {
    const RunRequest& request = parts_.run.request;
    open_directory({}, {});
    announce(model, loaded);
    std::vector<Tensor> weights = nn::tensors_of(model.state());
    comm::broadcast_tensors(ranks_, weights);
    StoredWeights(request.precision, model).refresh(parts_.stream);
    const double start_s = seconds_since_process_start();
    TrainingResult result;
    EvaluationTask task = evaluation_task(request, parts_.data.sets, model, parts_.console);
    Safetensors logits;
    const bool saves = !request.save_logits.empty();
    OutputCollector outputs({.mistakes = &mistakes_, .logits = saves ? &logits : nullptr},
                            *parts_.data.sets.test);
    task.observer = &outputs;
    result.final = lockstep::evaluate(task, parts_.stream, ranks_);
    ExitCode code = result.final ? ExitCode::kDone : ExitCode::kStopped;
    if (result.final) {
      if (const auto error = soundness_error(model, *result.final)) {
        code = error->code();
        const std::string text = format_error(*error);
        parts_.console.warn(text.substr(0, text.size() - 1));  // without its newline
      }
      result.images = result.final->total;
      result.training_s = seconds_since_process_start() - start_s;
      parts_.console.result(accuracy_line(*result.final, request.apex_lines));
    }
    if (result.final && saves) {
      write_logits(request.save_logits, logits, ranks_);
      parts_.console.result("logits  " + request.save_logits);
    }
    write_record(result, model, seconds_since_process_start(), code);
    parts_.console.result(fmt::format("record  {}/run.json", output_dir()));
    parts_.console.summary(summary_json(record_, output_dir(), result));
    report_run();
    return code;
  }

 private:
  TrainingParts training_parts(nn::Module& model) const {
    StepInputs inputs = step_inputs(parts_.run, parts_.data.sets, ranks_, parts_.stream, model);
    inputs.exchange = parts_.route.exchange;
    inputs.pool_bytes = parts_.pool_bytes;
    const std::optional<ReplayPlan>& plan = parts_.job.replay;
    return {with_program(std::move(inputs), parts_.console, parts_.fault),
            parts_.run,
            parts_.console,
            parts_.fault,
            parts_.start.position(),
            plan ? std::optional(plan->target) : std::nullopt};
  }

  void restore_optimizer(Training& training) {
    run_or_end_all_ranks(ranks_, [&] {
      const std::optional<ResumePoint>& from = parts_.start.resumed();
      if (!is_rank0() || !from) return;
      load_state(training.update().optimizer().state(),
                 from->checkpoint.optimizer,
                 fmt::format("the optimizer's state in {} does not fit",
                             state_file_of(from->model_file).string()),
                 "--opt, --momentum, --lookahead and --ema as in the run that made it");
    });
  }

  ExitCode replay(const ReplayPlan& plan, Training& training, RunObserver& observer) {
    plan.check(ranks_.size(), parts_.data.digest);
    parts_.console.result(plan.line(ranks_.size()));
    observer.open({}, training);
    training.share_weights();
    training.run();
    if (!observer.numerics()) plan.refuse_passed();
    run_or_end_all_ranks(ranks_, [&] {
      if (is_rank0()) plan.keep(*observer.numerics());
    });
    ranks_.barrier();
    return ExitCode::kDone;
  }

  bool is_unnamed() const { return parts_.start.output_dir().empty(); }
  bool is_rank0() const { return ranks_.rank() == 0; }

  RunIdentity identity() const {
    return identity_of(parts_.run, parts_.start.options(), parts_.data.digest, record_.evaluation);
  }

  void prepare_directory(const StepRange& steps) {
    parts_.start.refuse_later_steps();
    if (is_unnamed()) parts_.run.output_dir = create_unused(parts_.run.output_dir);
    name_run_directory(parts_.run.output_dir);
    const auto warn = [this](const std::string& warning) { parts_.console.warn(warning); };
    directory_ =
        std::make_unique<RunDirectory>(parts_.run.output_dir, parts_.start.existing_run(), warn);
    if (const std::optional<ResumePoint>& from = parts_.start.resumed()) {
      record_.resumed = {from->model_file.string(), from->checkpoint.record.position.steps};
    }
    const RunRequest& request = parts_.run.request;
    if (!request.save_logits.empty()) check_logits_file(request.save_logits, request.overwrite);
    if (!request.csv.empty() && !request.evaluate) {
      csv_.emplace(request.csv, parts_.start.continued_epoch(), request.overwrite);
    }
    if (parts_.start.existing_run() == ExistingRun::kOverwrite) directory_->remove_earlier_run();
    if (request.evaluate) return;
    directory_->become_latest();
    const Folder& checkpoints = directory_->checkpoints();
    for (const std::string& note : parts_.start.settle_best(checkpoints)) parts_.console.warn(note);
    const bool evaluates = begins_with_evaluation(parts_.start.position(), steps);
    if (parts_.start.existing_run() == ExistingRun::kContinue) {
      directory_->cut_metrics(record_.resumed ? record_.resumed->step : 0, evaluates);
    }
  }

  void open_keeper() {
    if (parts_.run.request.kept_steps == 0) return;
    run_or_end_all_ranks(ranks_, [&] {
      if (parts_.job.launch.local_rank != 0) return;
      keeper_.emplace(kept_state_folder(), identity(), [](const std::string& warning) {
        print_line(stderr, warning);
      });
    });
  }

  CheckpointWriter::Options writer_options() const {
    return {.folder = [this]() -> const Folder& { return directory_->checkpoints(); },
            .keep = parts_.run.request.keep,
            .newest_sound = parts_.start.newest_in_place()};
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes = parts_.start.options().notes;
    const auto add = [&](const std::vector<std::string>& more) {
      notes.insert(notes.end(), more.begin(), more.end());
    };
    add(notes_on(parts_.data, !parts_.run.request.no_eval));
    if (!parts_.route.note.empty()) notes.push_back(parts_.route.note);
    if (!parts_.engines.note.empty()) notes.push_back(parts_.engines.note);
    add(parts_.start.notes(identity(), parts_.run, parts_.data.sets));
    add(main_py_notes(parts_.start.options(), parts_.run, parts_.job.launch));
    return notes;
  }

  // All checks that may refuse the run are done: a run that does not start leaves nothing.
  void open_directory(std::span<const comm::Bucket> buckets, const StepRange& steps) {
    record_.plan = make_run_plan(parts_.run, buckets);
    record_.plan.steps_per_epoch = steps.per_epoch;
    record_.plan.last_step = steps.end;
    comm::handshake(ranks_, handshake_fields(record_.plan));
    run_or_end_all_ranks(ranks_, [&] {
      if (!is_rank0()) return;
      prepare_directory(steps);
      directory_->write(record_);
      keep_plans(parts_.run, parts_.engines);
    });
    if (is_unnamed()) parts_.run.output_dir = comm::broadcast_text(ranks_, parts_.run.output_dir);
    const Folder* const folder = directory_ ? &directory_->folder() : nullptr;
    const std::string problem = parts_.job.flight->open(ranks_, folder);
    if (!problem.empty()) parts_.console.warn("note: " + problem);
  }

  void announce(const nn::Module& model, const std::vector<std::string>& loaded) const {
    const RunRequest& request = parts_.run.request;
    const auto say = [&](const std::vector<std::string>& lines) {
      for (const std::string& line : lines) parts_.console.info(line);
    };
    say(start_lines(parts_.run, parts_.data.sets, model));
    if (ranks_.size() > 1) say(host_lines(places_));
    if (parts_.engines.convolutions > 0) {
      parts_.console.info(parts_.engines.line(plan_file_of(request, parts_.run.output_dir)));
    }
    say(opening_lines(parts_.start.options(), parts_.run, parts_.job.launch, loaded));
    parts_.console.info("run dir " + parts_.run.output_dir);
    const auto name = std::filesystem::path(parts_.run.output_dir).filename().string();
    for (const std::string& line : tricks_start_lines(parts_.run.batch.ranks, name)) {
      parts_.console.tutorial(TutorialLines::kTricks, line);
    }
  }

  // Rank 0's directory may have moved.
  std::string output_dir() const {
    return directory_ ? directory_->path().string() : parts_.run.output_dir;
  }

  ExitCode end(TrainingResult result, const nn::Module& model) {
    const double wall_s = seconds_since_process_start();
    ranks_.broadcast(std::as_writable_bytes(std::span(&result.saved, 1)), 0);
    if (keeper_ && result.saved) keeper_->remove();
    const ExitCode code = exit_code_of(result);
    write_record(result, model, wall_s, code);
    if (directory_) report_end(parts_.console, parts_.run, result, directory_->path(), wall_s);
    parts_.console.summary(summary_json(record_, output_dir(), result));
    report_run();
    return code;
  }

  void end_without_figures(ExitCode code) {
    on_rank_0(ranks_, "writing its record", [&] {
      record_.exit_code = code;
      directory_->write(record_);
    });
    report_run();
  }

  void report_run() {
    on_rank_0(ranks_, "writing the report", [&] {
      if (!parts_.run.request.report) return;
      if (record_.final_metrics && record_.digest) mistakes_.digest = to_hex(*record_.digest);
      write_final_report(directory_->path(), mistakes_, *parts_.data.sets.test, parts_.console);
    });
  }

  void write_record(const TrainingResult& result,
                    const nn::Module& model,
                    double wall_s,
                    ExitCode code) {
    const std::vector<MemoryPeaks> peaks = comm::gather_value(ranks_, memory_peaks());
    run_or_end_all_ranks(
        ranks_,
        [&] {
          if (!directory_) return;
          record_.digest = state_digest(model);
          record_.exit_code = code;
          record_.final_metrics = final_metrics(parts_.run.request, result, wall_s);
          describe_end(result, peaks, record_);
          directory_->write(record_);
        },
        "writing its record");
  }

  const Parts parts_;
  Communicator& ranks_;
  std::vector<RankPlace> places_;            // by rank
  std::unique_ptr<RunDirectory> directory_;  // rank 0's
  std::optional<EpochCsv> csv_;              // rank 0's
  std::optional<StateKeeper> keeper_;        // of the first rank of each host
  RunRecord record_;
  Mistakes mistakes_;  // of the last evaluation
};

}  // namespace

ExitCode train_run(const Job& job) {
  Communicator& ranks = job.ranks;
  const std::optional<Fault> fault = begin_job(job);
  StartingPoint start(job.request, job.options, ranks, job.launch.local_rank == 0);
  const RunData data = open_data(start.request(), fault, ranks);
  const std::shared_ptr<const data::Dataset>& train = data.sets.train;  // null: an evaluation
  const data::Dataset& images = train ? *train : *data.sets.test;
  const StartingPoint::Settled settled = start.settle(data.sets, data.digest, ranks);
  const RunRequest& request = settled.request;
  const int64_t threads = agreed_threads(request.threads, job.launch, ranks);
  const BatchDivision batch = divide_batch(request.batch, request.device, ranks.size(), threads);
  const ModelOptions network = network_of(request, images);
  run_or_end_all_ranks(ranks, [&] {
    check_classes(network, images);
    if (!train) return;
    check_steps(request.batch, batch, train->size());
    check_mixing(request, batch, train->size());
    if (!request.no_eval) check_network(at_size(network, data.sets.test->image_shape()));
    const ModelOptions at_first = at_size(network, train->training_shape(request.start_epoch));
    check_network(at_first);
    check_batch_norm(batch, request.max_steps, at_first, train->size());
  });
  const LibraryVersions libraries = agreed_cuda_libraries(request, ranks);
  const GradientRoute route = choose_gradient_route(request, job.transport, ranks);
  RunRecord record;
  record.start = std::chrono::system_clock::now();
  record.evaluation = settled.evaluation;
  std::string output_dir = start.output_dir();
  if (output_dir.empty()) output_dir = default_output_dir(request.arch, ranks.size(), record.start);
  Console console = make_console(job);
  warn_at_start(job, request, batch, images.size(), libraries, console);
  if (request.lr_dry_run) return print_all(lr_lines(request, batch, train->size()), console, ranks);
  if (request.explain_precision) return print_all(explain(request.precision), console, ranks);
  if (request.device == Device::kCpu) kernels::require_onednn();
  const int64_t workers = request.device == Device::kCuda ? 1 : threads;  // on the host
  Stream stream(request.device, static_cast<int>(workers), may_spin(job.launch, threads));
  const EngineInputs inputs{
      request, batch, network, *data.sets.test, libraries, plan_file_of(request, output_dir)};
  const SettledEngines engines = settle_run_engines(inputs, stream, ranks, console);
  ResolvedRun run{.request = request,
                  .batch = batch,
                  .threads = threads,
                  .transport = route.transport,
                  .cuda_libraries = libraries,
                  .plan_choices = digest_of(engines.engines),
                  .output_dir = output_dir};
  const int64_t pool_bytes = settle_memory(run, network, data.sets, ranks, engines.workspace_bytes);
  // Allocates it now: recorded work would keep a smaller one beside the next.
  run_or_end_all_ranks(ranks,
                       [&] { stream.workspace(static_cast<size_t>(engines.workspace_bytes), 0); });
  Run whole({job, run, data, network, route, engines, start, fault, stream, console, pool_bytes},
            record);
  Mt19937 rng(request.seeds.weights);
  const auto model = make_model(network, nn::Init{rng, request.device});
  const std::vector<std::string> loaded = whole.load_weights(*model);
  return request.evaluate ? whole.evaluate(*model, loaded) : whole.train(*model, loaded);
}

}  // namespace lockstep::trainers
