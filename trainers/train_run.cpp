#include "trainers/train_run.h"

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>

#include <fmt/core.h>

#include "comm/handshake.h"
#include "comm/replicas.h"
#include "core/cuda/device.h"
#include "core/digest.h"
#include "core/version.h"
#include "kernels/isa.h"
#include "kernels/onednn_version.h"
#include "trainers/checkpoint/starting_point.h"
#include "trainers/config/rank_threads.h"
#include "trainers/config/resolve_run.h"
#include "trainers/loop/agree.h"
#include "trainers/loop/batch_norm_check.h"
#include "trainers/loop/gradient_route.h"
#include "trainers/loop/lr_dry_run.h"
#include "trainers/loop/models.h"
#include "trainers/loop/process_time.h"
#include "trainers/loop/stored_weights.h"
#include "trainers/loop/training.h"
#include "trainers/loop/training_data.h"
#include "trainers/output/run_report.h"
#include "trainers/plans/run_engines.h"

namespace lockstep::trainers {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): before any thread starts
  return value == nullptr ? "" : value;
}

std::string executable_digest() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  return to_hex(digest(std::as_bytes(std::span(bytes))));
}

std::string device_of_rank(const RunConfig& config) {
  if (config.device == Device::kCpu) return "cpu";
  const cuda::DeviceProperties& gpu = cuda::device_properties();
  return fmt::format("{} (sm_{}{})", gpu.name, gpu.major, gpu.minor);
}

void shake_hands(const TrainRequest& request) {
  using Kind = comm::HandshakeField::Kind;
  std::vector<comm::HandshakeField> fields = {
      {Kind::kEnvironment, "version", std::string(version())},
      {Kind::kEnvironment, "program file", executable_digest()},
      {Kind::kEnvironment, "processor level", std::string(name_of(kernels::isa_level()))},
      {Kind::kEnvironment, "bf16 products", kernels::onednn_has_bf16() ? "native" : "in f32"}};
  for (const ResolvedFlag& flag : request.options.resolved()) {
    fields.push_back({Kind::kArgument, "--" + flag.name, flag.value});
  }
  fields.push_back({Kind::kEnvironment, "device", device_of_rank(request.config)});
  comm::handshake(request.ranks, fields);
}

// Ops of a CUDA stream run on no thread of the host.
int stream_threads(const RunConfig& config) {
  return config.device == Device::kCuda ? 1 : static_cast<int>(config.threads);
}

class Run {
 public:
  explicit Run(const TrainRequest& request)
      : request_(request), options_(request.options), config_(request.config) {}

  ExitCode execute() {
    set_up();
    if (config_.lr_dry_run) return print(lr_lines(config_, data_.train->size()));
    if (config_.explain_precision) return print(explain(config_.precision));
    if (config_.device == Device::kCpu) kernels::require_onednn();
    Stream stream(
        config_.device, stream_threads(config_), may_spin(request_.launch, config_.threads));
    Console console = make_console();
    engines_ =
        settle_run_engines(config_, model_options(), *data_.test, stream, request_.ranks, console);
    Mt19937 rng(config_.seed);
    const std::unique_ptr<nn::Module> model =
        make_model(model_options(), nn::Init{rng, config_.device});
    for (const std::string& note : notes()) console.warn(note);
    std::vector<std::string> loaded;
    on_all_ranks(request_.ranks, [&] {
      if (is_rank0()) loaded = start_->load(*model, config_);
    });
    if (config_.evaluate) return evaluate_weights(stream, *model, console, loaded);

    Training training({config_,
                       data_,
                       request_.ranks,
                       stream,
                       *model,
                       console,
                       fault_,
                       start_->position(),
                       replay_target(),
                       route_.exchange});
    on_all_ranks(request_.ranks, [&] {
      const std::optional<ResumePoint>& from = start_->resumed();
      if (!is_rank0() || !from) return;
      training.restore(from->checkpoint.optimizer, state_file_of(from->model_file).string());
    });
    if (request_.replay) return replay(*request_.replay, training, console);
    open_directory(training.buckets());
    announce(console, *model, loaded);
    std::optional<CheckpointWriter> checkpoints;
    if (directory_) checkpoints.emplace(writer_options(), identity(), console);
    return end(training.run({.directory = directory_.get(),
                             .checkpoints = checkpoints ? &*checkpoints : nullptr}),
               *model,
               console);
  }

 private:
  void set_up() {
    on_all_ranks(request_.ranks, [&] {
      if (config_.device == Device::kCuda) {
        cuda::select_device(request_.launch.local_rank, request_.launch.local_size);
      }
      fault_ = parse_fault(variable("LOCKSTEP_FAULT"));
    });
    shake_hands(request_);
    start_ = std::make_unique<StartingPoint>(config_, options_, request_.ranks);
    on_all_ranks(request_.ranks, [&] { data_ = open_training_data(config_, fault_); });
    const std::string digests = data_.train->digest() + data_.test->digest();
    const comm::HandshakeField same = {comm::HandshakeField::Kind::kEnvironment, "data", digests};
    comm::handshake(request_.ranks, std::span(&same, 1));
    record_.evaluation = start_->settle(config_, options_, data_, digests, request_.ranks);
    resolve_run(config_,
                request_.ranks.size(),
                agreed_threads(config_, request_.launch, request_.ranks),
                data_.train->size());
    on_all_ranks(request_.ranks, [&] {
      check_classes(model_options(), *data_.train);
      check_batch_norm(config_, model_options(), data_.train->size());
    });
    compare_cuda_libraries(config_, request_.ranks);
    route_ = choose_gradient_route(config_, request_.ranks);
    if (config_.output_dir.empty()) {
      config_.output_dir = unused_path(default_output_dir(config_, std::time(nullptr))).string();
    }
    record_.argv = request_.argv;
    record_.data_digest = digests;
    record_.start = std::chrono::system_clock::now();
    record_.flags = options_.resolved();
    describe_run(config_, request_.ranks, record_);
  }

  ExitCode print(const std::vector<std::string>& lines) {
    Console console = make_console();
    for (const std::string& line : lines) console.result(line);
    request_.ranks.barrier();
    return ExitCode::kDone;
  }

  std::optional<ReplayTarget> replay_target() const {
    return request_.replay ? std::optional(request_.replay->target) : std::nullopt;
  }

  ExitCode replay(const ReplayPlan& plan, Training& training, Console& console) {
    plan.check(request_.ranks.size(), record_.data_digest);
    console.result(plan.line(request_.ranks.size()));
    const TrainingResult result = training.run({});
    if (!result.numerics) plan.refuse_passed();
    on_all_ranks(request_.ranks, [&] {
      if (is_rank0()) plan.keep(*result.numerics);
    });
    request_.ranks.barrier();
    return ExitCode::kDone;
  }

  bool is_rank0() const { return request_.ranks.rank() == 0; }

  RunIdentity identity() const {
    return identity_of(config_, options_, record_.data_digest, record_.evaluation);
  }

  void prepare_directory() {
    directory_ = std::make_unique<RunDirectory>(config_.output_dir, start_->existing_run());
    if (const std::optional<ResumePoint>& from = start_->resumed()) {
      record_.resumed = {from->model_file.string(), from->checkpoint.record.at.steps};
    }
    if (config_.evaluate) return;
    start_->carry_best_to(directory_->checkpoints());
    if (start_->existing_run() == ExistingRun::kContinue) {
      directory_->cut_metrics(record_.resumed ? record_.resumed->step : 0);
    }
  }

  CheckpointWriter::Options writer_options() const {
    return {.folder = directory_->checkpoints(),
            .keep = config_.keep,
            .newest_sound = start_->newest_in_place()};
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes = options_.notes;
    if (!route_.note.empty()) notes.push_back(route_.note);
    if (!engines_.note.empty()) notes.push_back(engines_.note);
    for (const std::string& note : start_->notes(identity())) notes.push_back(note);
    if (config_.device != Device::kCpu) return notes;
    const int64_t images = config_.global_batch / (config_.ranks * config_.micro_steps);
    for (const std::string& note :
         notes_on(config_.precision, images, kernels::onednn_has_bf16())) {
      notes.push_back(note);
    }
    return notes;
  }

  // What may be refused has been by now: a run that does not start leaves nothing.
  void open_directory(std::span<const comm::Bucket> buckets) {
    record_.plan = make_run_plan(config_, buckets);
    comm::handshake(request_.ranks, handshake_fields(record_.plan));
    on_all_ranks(request_.ranks, [&] {
      if (!is_rank0()) return;
      prepare_directory();
      directory_->write(record_);
      keep_plans(config_, engines_);
    });
  }

  ModelOptions model_options() const {
    return {.arch = config_.arch,
            .classes = config_.classes.value_or(data_.train->classes()),
            .image = data_.train->image_shape(),
            .cifar_stem = config_.cifar_stem,
            .zero_init_residual = config_.zero_init_residual};
  }

  Console make_console() const {
    return Console({.prints = request_.ranks.rank() == 0,
                    .quiet = config_.quiet,
                    .tutorial = config_.preset.starts_with("demo-"),
                    .progress = choose_progress(
                        config_.progress, request_.launch.launcher != comm::Launcher::kNone)});
  }

  void announce(Console& console,
                const nn::Module& model,
                const std::vector<std::string>& loaded) const {
    for (const std::string& line : start_lines(config_, data_, model)) console.info(line);
    if (engines_.convolutions > 0) console.info(engines_.line(plan_file_of(config_)));
    if (config_.main_py_lines) console.info(fmt::format("=> creating model '{}'", config_.arch));
    for (const std::string& line : loaded) console.info(line);
    console.info("run dir " + config_.output_dir);
  }

  ExitCode evaluate_weights(Stream& stream,
                            nn::Module& model,
                            Console& console,
                            const std::vector<std::string>& loaded) {
    open_directory({});
    announce(console, model, loaded);
    std::vector<Tensor> weights;
    for (const nn::StateEntry& entry : model.state()) weights.push_back(entry.tensor);
    comm::broadcast_tensors(request_.ranks, weights);
    StoredWeights(config_.precision, model.named_parameters()).refresh(stream);
    const double start_s = seconds_since_process_start();
    TrainingResult result;
    result.final = evaluate(test_of(config_, data_, model, console), stream, request_.ranks);
    const ExitCode code = result.final ? ExitCode::kDone : ExitCode::kStopped;
    if (result.final) {
      result.images = result.final->total;
      result.training_s = seconds_since_process_start() - start_s;
      console.result(accuracy_line(config_, *result.final));
    }
    leave_record(result, model, seconds_since_process_start(), code);
    console.result(fmt::format("record  {}/run.json", config_.output_dir));
    request_.ranks.barrier();
    return code;
  }

  ExitCode end(TrainingResult result, const nn::Module& model, Console& console) {
    const double wall_s = seconds_since_process_start();
    request_.ranks.broadcast(std::as_writable_bytes(std::span(&result.saved, 1)), 0);
    const ExitCode code = !result.saved    ? ExitCode::kEnvironment
                          : result.stopped ? ExitCode::kStopped
                                           : ExitCode::kDone;
    leave_record(result, model, wall_s, code);
    if (result.final) {
      console.tutorial(fmt::format("Accuracy is {:.2f}%", result.final->acc1()));
    }
    console.tutorial(fmt::format("\ntime elapsed: {:.2f} seconds", result.training_s));
    if (directory_) report_end(console, config_, result, directory_->path(), wall_s);
    request_.ranks.barrier();
    return code;
  }

  void leave_record(const TrainingResult& result,
                    const nn::Module& model,
                    double wall_s,
                    ExitCode code) {
    on_all_ranks(request_.ranks, [&] {
      if (!directory_) return;
      record_.digest = state_digest(model);
      record_.end = std::chrono::system_clock::now();
      record_.exit_code = code;
      record_.final_metrics = final_metrics(result, wall_s);
      record_.communication = result.communication;
      directory_->write(record_);
    });
  }

  const TrainRequest& request_;
  Options options_;  // and what a file of weights records
  RunConfig config_;
  GradientRoute route_;  // outlives what is recorded of it
  data::DatasetPair data_;
  std::optional<Fault> fault_;
  std::unique_ptr<StartingPoint> start_;
  std::unique_ptr<RunDirectory> directory_;  // rank 0's
  SettledEngines engines_;
  RunRecord record_;
};

}  // namespace

ExitCode train_run(const TrainRequest& request) {
  return Run(request).execute();
}

}  // namespace lockstep::trainers
