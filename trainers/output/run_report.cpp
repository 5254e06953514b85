#include "trainers/output/run_report.h"

#include <fmt/core.h>

#include "comm/nccl/connect.h"
#include "core/cuda/device.h"
#include "core/version.h"
#include "kernels/isa.h"
#include "kernels/onednn_version.h"
#include "trainers/config/resolve_run.h"
#include "trainers/output/rank_place.h"
#include "trainers/output/versions.h"

namespace lockstep::trainers {
namespace {

double images_per_s(const TrainingResult& result) {
  return result.training_s > 0 ? static_cast<double>(result.images) / result.training_s : 0;
}

std::string with_commas(int64_t value) {
  std::string text = std::to_string(value);
  for (auto at = std::ssize(text) - 3; at > 0; at -= 3) text.insert(static_cast<size_t>(at), ",");
  return text;
}

std::string exchange_text(const RunConfig& config) {
  if (config.exchange.algorithm == Algorithm::kNone) return "no all-reduce";
  std::string text = fmt::format("{} all-reduce", algorithm_name(config.exchange));
  if (config.over_nccl()) return fmt::format("{} over NCCL {}", text, comm::nccl::version());
  if (config.over_ipc()) return fmt::format("{} over CUDA IPC", text);
  if (config.ranks == 1) return text;
  const bool staged = config.device == Device::kCuda;
  return fmt::format(
      "{} over {}{}", text, config.transport, staged ? ", gradients travel through the host" : "");
}

// "cpu v3 (oneDNN 2.6.3)", "cuda NVIDIA H200 (sm_90, a graph a step)"
std::string device_text(const RunConfig& config) {
  if (config.device == Device::kCuda) {
    const cuda::DeviceProperties& gpu = cuda::device_properties();
    const std::string_view steps = runs_as_graph(config) ? "a graph a step" : "no graph";
    return fmt::format("cuda {} (sm_{}{}, {})", gpu.name, gpu.major, gpu.minor, steps);
  }
  return fmt::format(
      "cpu {} (oneDNN {})", name_of(kernels::isa_level()), kernels::onednn_version());
}

// "O2 in f16"
std::string precision_text(const PrecisionConfig& precision) {
  std::string text(name_of(precision.level));
  if (precision.is_mixed()) text += fmt::format(" in {}", name_of(precision.dtype));
  return text;
}

}  // namespace

std::vector<std::string> start_lines(const RunConfig& config,
                                     const data::DatasetPair& data,
                                     const nn::Module& model) {
  const auto counted = [](int64_t n, const char* noun) {
    return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
  };
  return {fmt::format("Lockstep {} · {} of {} · {} · {}",
                      version(),
                      counted(config.ranks, "rank"),
                      counted(config.threads, "thread"),
                      device_text(config),
                      exchange_text(config)),
          fmt::format("arch {} ({} parameters) · data {} ({}/{}) · {} images a step · {} · seed {}",
                      config.arch,
                      with_commas(model.parameter_count()),
                      config.dataset,
                      data.train->size(),
                      data.test->size(),
                      config.global_batch,
                      precision_text(config.precision),
                      config.seed),
          reach_text(config)};
}

void describe_run(const RunConfig& config, Communicator& ranks, RunRecord& record) {
  record.versions = versions();
  if (config.over_nccl()) record.versions["nccl"] = comm::nccl::version();
  record.versions.insert(config.cuda_libraries.begin(), config.cuda_libraries.end());
  const auto threads = static_cast<int>(config.threads);
  for (const RankPlace& place : gather_places(ranks, this_place())) {
    record.ranks.push_back(
        {.host = place.host, .device = std::string(name_of(config.device)), .threads = threads});
  }
}

std::optional<FinalMetrics> final_metrics(const TrainingResult& result, double wall_s) {
  if (!result.final) return std::nullopt;
  return FinalMetrics{.acc1 = result.final->acc1(),
                      .acc5 = result.final->acc5(),
                      .loss = result.final->loss,
                      .correct = result.final->correct1,
                      .total = result.final->total,
                      .images_per_s = images_per_s(result),
                      .wall_s = wall_s,
                      .first_step_s = result.first_step_s};
}

void report_end(Console& console,
                const RunConfig& config,
                const TrainingResult& result,
                const std::filesystem::path& directory,
                double wall_s) {
  if (result.stopped) {
    console.warn(fmt::format("stopped on a signal after step {}{}",
                             result.steps,
                             result.saved ? "; --resume goes on from there" : ""));
  }
  if (!result.saved) {
    console.warn(format_error(
        EnvironmentError("the last state of the run is not saved",
                         "a warning above says which file could not be written and why",
                         fmt::format("more room, then --resume {} from its newest checkpoint",
                                     directory.string()))));
  }
  const double speed = images_per_s(result);
  if (result.final && !console.options().tutorial) {
    console.result(fmt::format("Accuracy is {:.2f}%", result.final->acc1()));
  }
  const std::string best =
      result.best.total == 0
          ? "not evaluated"
          : fmt::format("best {:.2f}% after epoch {}", result.best.acc1(), result.best_epoch + 1);
  console.result(fmt::format("{} · {} steps · {:.1f} s in all · {} images/s ({} a rank)",
                             best,
                             with_commas(result.steps),
                             wall_s,
                             with_commas(static_cast<int64_t>(speed)),
                             with_commas(static_cast<int64_t>(speed) / config.ranks)));
  const std::string run = directory.string();
  if (result.saved) {
    console.result(
        fmt::format("weights {}/checkpoints/last.safetensors (safetensors.torch.load_file)", run));
  }
  console.result(fmt::format("record  {}/run.json", run));
  console.result(fmt::format("metrics {}/metrics.jsonl (one JSON object a line)", run));
}

}  // namespace lockstep::trainers
