#include "trainers/report/run_report.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>
#include <fmt/format.h>

#include "comm/nccl/connect.h"
#include "core/cuda/device.h"
#include "core/version.h"
#include "core/words.h"
#include "engine/update/schedule.h"
#include "kernels/support/isa.h"
#include "kernels/support/onednn/version.h"
#include "trainers/report/number_text.h"
#include "trainers/report/process.h"

namespace lockstep::trainers {
namespace {

// tcp://HOST:PORT becomes tcp://host0:PORT: rank 0 is there.
void hide_host_of_url(std::string& text) {
  constexpr std::string_view kScheme = "tcp://";
  const size_t scheme = text.find(kScheme);
  const size_t port = text.rfind(':');
  if (scheme == std::string::npos || port <= scheme + kScheme.size()) return;
  const size_t host = scheme + kScheme.size();
  text.replace(host, port - host, "host0");
}

// Nothing where no step was left to take.
std::optional<double> images_per_s(const TrainingResult& result) {
  if (result.images == 0 || result.training_s <= 0) return std::nullopt;
  return static_cast<double>(result.images) / result.training_s;
}

// "20,000 images/s (10,000 per rank)"
std::string speed_text(const TrainingResult& result, int64_t ranks) {
  const std::optional<double> speed = images_per_s(result);
  if (!speed) return "no step was left to take";
  const auto images = static_cast<int64_t>(*speed);
  return fmt::format("{} images/s ({} per rank)", count_text(images), count_text(images / ranks));
}

// "97.5 % after epoch 3"
std::string best_text(const TrainingResult& result, const RunRequest& request) {
  if (result.best.total > 0) {
    return fmt::format("best {:.2f}% after epoch {}", result.best.acc1(), result.best.epoch + 1);
  }
  return request.no_eval ? "not evaluated: --no-eval" : "not evaluated";
}

// "60000/10000", the second to evaluate
std::string sizes_text(const data::DatasetPair& data) {
  if (!data.train) return fmt::format("{} to evaluate", data.test->size());
  return fmt::format("{}/{}", data.train->size(), data.test->size());
}

std::string exchange_text(const ResolvedRun& run) {
  if (run.request.exchange.algorithm == Algorithm::kNone) return "no all-reduce";
  std::string text = fmt::format("{} all-reduce", algorithm_name(run.request.exchange));
  if (run.over_nccl()) return fmt::format("{} over NCCL {}", text, comm::nccl::version());
  if (run.over_ipc()) return fmt::format("{} over CUDA IPC", text);
  if (run.batch.ranks == 1) return text;
  const bool staged = run.request.device == Device::kCuda;
  return fmt::format(
      "{} over {}{}", text, run.transport, staged ? ", gradients travel through the host" : "");
}

// "cpu v3 (oneDNN 2.6.3)", "cuda NVIDIA H200 (sm_90, one graph per step)"
std::string device_text(const ResolvedRun& run) {
  if (run.request.device == Device::kCuda) {
    const cuda::DeviceProperties& gpu = cuda::device_properties();
    const std::string_view steps = run.runs_as_graph() ? "one graph per step" : "no graph";
    return fmt::format("cuda {} ({}, {})", gpu.name, gpu.architecture(), steps);
  }
  return fmt::format(
      "cpu {} (oneDNN {})", name_of(kernels::isa_level()), kernels::onednn_version());
}

// "42", "42 (order 0, weights 42)"
std::string seed_text(const Seeds& seeds) {
  const auto& [run, order, weights] = seeds;
  if (order == run && weights == run) return std::to_string(run);
  return fmt::format("{} (order {}, weights {})", run, order, weights);
}

// "O2 in f16"
std::string precision_text(const PrecisionConfig& precision) {
  std::string text(name_of(precision.level));
  if (precision.is_mixed()) text += fmt::format(" in {}", name_of(precision.dtype));
  return text;
}

}  // namespace

std::vector<std::string> start_lines(const ResolvedRun& run,
                                     const data::DatasetPair& data,
                                     const nn::Module& model) {
  return {fmt::format("Lockstep {} · {} of {} · {} · {}",
                      version(),
                      counted(run.batch.ranks, "rank"),
                      counted(run.threads, "thread"),
                      device_text(run),
                      exchange_text(run)),
          fmt::format("arch {} ({} parameters) · data {} ({}) · {} images per step · {} · seed {}",
                      run.request.arch,
                      count_text(model.parameter_count()),
                      run.request.dataset,
                      sizes_text(data),
                      run.batch.images,
                      precision_text(run.request.precision),
                      seed_text(run.request.seeds)),
          same_bits_text(run.batch, run.request.exchange)};
}

std::vector<std::string> lr_lines(const RunRequest& request,
                                  const BatchDivision& batch,
                                  int64_t dataset_images) {
  const int64_t per_epoch = steps_per_epoch(batch, dataset_images);
  const Schedule schedule(
      request.schedule, request.optimizer.base_lr(batch.images), request.epochs, per_epoch);
  const int64_t begin = request.start_epoch * per_epoch;
  const int64_t all_steps = request.steps(per_epoch) - begin;
  const int64_t steps = std::min(all_steps, request.max_steps.value_or(all_steps));
  constexpr int64_t kFewSteps = 20;
  const int64_t stride = steps <= kFewSteps ? 1 : per_epoch;
  std::vector<std::string> lines;
  for (int64_t first = begin; first < begin + steps; first += stride) {
    const int64_t last = std::min(first + stride, begin + steps) - 1;
    std::string line =
        fmt::format("epoch {} step {} lr {:.7g}", first / per_epoch, first + 1, schedule.lr(first));
    if (last > first) line += fmt::format(" to step {} lr {:.7g}", last + 1, schedule.lr(last));
    if (const data::PhotoOptions& photos = request.photos; photos.train_ramp.from > 0) {
      const int64_t side = photos.train_ramp.side(first / per_epoch, photos.train_crop);
      line += fmt::format(" images {0}x{0}", side);
    }
    lines.push_back(line);
  }
  if (schedule.watches_validation()) lines.emplace_back("--lr-scheduler plateau may cut these");
  if (request.early_stopping.patience > 0) {
    lines.push_back(
        fmt::format("--early-stopping {} may end it early", request.early_stopping.patience));
  }
  return lines;
}

void describe_run(const ResolvedRun& run, std::span<const RankPlace> places, RunRecord& record) {
  if (run.request.anonymous) {
    std::ranges::for_each(record.argv, hide_host_of_url);
    for (ResolvedFlag& flag : record.flags) hide_host_of_url(flag.value);
  }
  record.versions = library_versions();
  if (run.over_nccl()) record.versions["nccl"] = comm::nccl::version();
  record.versions.insert(run.cuda_libraries.begin(), run.cuda_libraries.end());
  const auto threads = static_cast<int>(run.threads);
  for (const RankPlace& place : places) {
    record.ranks.push_back({.host = place.host,
                            .device = place.device,
                            .threads = threads,
                            .local_rank = place.local_rank,
                            .cores = place.cores});
  }
}

void describe_end(const TrainingResult& result,
                  std::span<const MemoryPeaks> peaks,
                  RunRecord& record) {
  record.end = std::chrono::system_clock::now();
  record.early_stop_epoch = result.early_stop_epoch;
  record.skipped_steps = result.skipped.count;
  record.communication = result.communication;
  if (result.step_times.count() > 0) record.step_times = result.step_times;
  for (size_t rank = 0; rank < peaks.size(); ++rank) {
    record.ranks[rank].peak_bytes = peaks[rank].host;
    if (peaks[rank].device > 0) record.ranks[rank].device_peak_bytes = peaks[rank].device;
  }
}

std::optional<FinalMetrics> final_metrics(const RunRequest& request,
                                          const TrainingResult& result,
                                          double wall_s) {
  if (result.stopped || (!result.final && !request.no_eval)) return std::nullopt;
  return FinalMetrics{.evaluation = result.final,
                      .images_per_s = images_per_s(result),
                      .wall_s = wall_s,
                      .first_step_s = result.first_step_s};
}

void report_end(Console& console,
                const ResolvedRun& run,
                const TrainingResult& result,
                const std::filesystem::path& directory,
                double wall_s) {
  if (result.final) {
    console.tutorial(TutorialLines::kDemo,
                     fmt::format("Accuracy is {:.2f}%", result.final->acc1()));
  }
  console.tutorial(TutorialLines::kDemo, fmt::format("\ntime elapsed: {:.2f} seconds", wall_s));
  if (result.stopped) {
    console.warn(fmt::format("stopped {} after step {}{}",
                             stop_cause(),
                             result.steps,
                             result.saved ? "; --resume goes on from there" : ""));
  }
  if (const auto failure = failure_of(result, directory.string())) {
    console.warn(format_error(*failure));
  }
  if (result.early_stop_epoch) {
    console.result(fmt::format("stopped early after epoch {}: {} in a row had no better test loss",
                               *result.early_stop_epoch + 1,
                               run.request.early_stopping.patience));
  }
  if (result.final && console.options().tutorial != TutorialLines::kDemo) {
    console.result(fmt::format("Accuracy is {:.2f}%", result.final->acc1()));
  }
  console.result(fmt::format("{} · {} · {:.1f} s in all · {}",
                             best_text(result, run.request),
                             steps_text(result.steps, result.skipped.count),
                             wall_s,
                             speed_text(result, run.batch.ranks)));
  const std::string folder = directory.string();
  if (result.saved) {
    console.result(fmt::format(
        "weights {}/checkpoints/last.safetensors (safetensors.torch.load_file)", folder));
  }
  if (result.best.total > 0 && console.options().tutorial == TutorialLines::kTricks) {
    console.result(fmt::format("best    {0}/checkpoints/best.safetensors (there: {0}.pt)", folder));
  }
  console.result(fmt::format("record  {}/run.json", folder));
  console.result(fmt::format("metrics {}/metrics.jsonl (one JSON object per line)", folder));
}

std::vector<std::string> explain(const PrecisionConfig& config) {
  const std::string_view half = config.is_mixed() ? name_of(config.dtype) : "f32";
  const std::string_view stored = config.level == OptLevel::kO1 ? "f32" : half;
  const std::string_view cast = config.level == OptLevel::kO1 ? ", cast for each use" : "";
  const auto parameter = [&](bool in_f32) {
    if (in_f32 || !config.is_mixed()) return std::string("f32");
    return fmt::format("{} values", half);
  };
  std::vector<std::string> lines = {
      fmt::format("precision of --opt-level {}", name_of(config.level)),
      fmt::format("  images and activations             {}", stored),
      fmt::format("  conv, linear: input and result     {}{}", half, cast),
      fmt::format("  conv, linear: weights they read    {}", half),
      "  conv, linear: sums of products     f32",
      "  batch norm: statistics             f32",
      fmt::format("  batch norm: input and result       {}", stored),
      fmt::format("  relu, gelu, add, pools             {}, as their input", stored),
      fmt::format("  softmax, cross-entropy             f32, from logits in {}", half),
      "  gradients of activations           as the activations",
      "  gradients of parameters            f32",
      fmt::format("  weights that the optimizer updates {}", parameter(config.master_weights)),
      fmt::format("  batch norm: parameters             {}", parameter(config.keep_batchnorm_fp32)),
      "  optimizer state                    f32"};
  lines.push_back(
      !config.loss_scaling ? "  loss scale                         1"
      : config.loss_scaling->dynamic
          ? fmt::format("  loss scale                         dynamic, from {:g}",
                        config.loss_scaling->initial)
          : fmt::format("  loss scale                         {:g}", config.loss_scaling->initial));
  return lines;
}

namespace {

constexpr std::array<int64_t, 4> kUsualRanks = {1, 2, 4, 8};

// "512 images per step in 4 micro-steps, 8 shards, 8 BN groups".
std::string cut_text(const BatchDivision& batch) {
  std::string text = counted(batch.images, "image") + " per step";
  if (batch.micro_steps > 1) text += fmt::format(" in {} micro-steps", batch.micro_steps);
  return fmt::format(
      "{}, {}, {}", text, counted(batch.shards, "shard"), counted(batch.bn_groups, "BN group"));
}

std::string without_tree(const ExchangeConfig& exchange, const std::string& run) {
  if (exchange.algorithm == Algorithm::kNone) {
    return fmt::format(
        "same bits: off, --algorithm none exchanges nothing: the ranks' weights drift apart, rank "
        "0's are evaluated and saved ({})",
        run);
  }
  return fmt::format(
      "same bits: off, --algorithm {} sums in an order that depends on the number of ranks ({}); "
      "on with --algorithm tree",
      algorithm_name(exchange),
      run);
}

}  // namespace

std::vector<int64_t> same_bits_ranks(const BatchDivision& batch, const ExchangeConfig& exchange) {
  if (!exchange.keeps_bits()) return {};
  std::vector<int64_t> counts(kUsualRanks.begin(), kUsualRanks.end());
  if (std::find(counts.begin(), counts.end(), batch.ranks) == counts.end()) {
    counts.push_back(batch.ranks);
    std::sort(counts.begin(), counts.end());
  }
  std::erase_if(counts, [&](int64_t ranks) { return !shares_subtrees(batch, ranks); });
  return counts;
}

std::string same_bits_text(const BatchDivision& batch, const ExchangeConfig& exchange) {
  const std::string cut = cut_text(batch);
  if (!exchange.keeps_bits()) return without_tree(exchange, cut);
  if (!shares_subtrees(batch, batch.ranks)) {
    std::string text = fmt::format(
        "same bits: off, {} ranks cannot share the shards as subtrees ({})", batch.ranks, cut);
    const int64_t shards = shards_for(batch, std::array{batch.ranks});
    if (shards != 0) text += fmt::format("; on with --shards {}", shards);
    return text;
  }
  const std::vector<int64_t> counts = same_bits_ranks(batch, exchange);
  std::string text = fmt::format(
      "same bits on {} rank{} ({})", fmt::join(counts, ","), counts.back() == 1 ? "" : "s", cut);
  if (std::includes(counts.begin(), counts.end(), kUsualRanks.begin(), kUsualRanks.end()))
    return text;
  std::vector<int64_t> wanted(kUsualRanks.begin(), kUsualRanks.end());
  wanted.push_back(batch.ranks);
  if (const int64_t shards = shards_for(batch, wanted)) {
    text += fmt::format("; on 1,2,4,8 ranks with --shards {}", shards);
  }
  return text;
}

}  // namespace lockstep::trainers
