#include "inspect/plan/plan_command.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/settings/batch_division.h"
#include "inspect/plan/training_plan.h"
#include "trainers/config/config_from_flags.h"
#include "trainers/planner/memory_plan.h"

namespace lockstep::trainers {
namespace {

double mib(int64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

double gflop(int64_t flops) {
  return static_cast<double>(flops) / 1e9;
}

double mb(int64_t bytes) {
  return static_cast<double>(bytes) / 1e6;
}

// Each of the following returns whole lines.
std::string memory_line(std::string_view kind, int64_t bytes) {
  return fmt::format("  {:<44} {:>10.1f} MiB\n", kind, mib(bytes));
}

std::string memory_text(const TrainingPlan& plan, const std::string& optimizer) {
  const StepMemory& memory = plan.step.memory;
  std::string text = "memory per rank\n";
  text += memory_line("parameters and buffers, f32", memory.parameters);
  text += memory_line("16-bit copies of parameters", memory.copies);
  text += memory_line(fmt::format("optimizer state ({})", optimizer), memory.optimizer);
  if (memory.average > 0) {
    text += memory_line("average of parameters and buffers (--ema)", memory.average);
  }
  text += memory_line("gradients of parameters, f32", memory.gradients);
  text += memory_line("activations that wait for backward()", memory.activations);
  text += memory_line("short-lived, at the peak", memory.made - memory.activations);
  text += memory_line("gaps between tensors", memory.placed - memory.made);
  text += memory_line("batches in flight and in a graph", memory.batches);
  if (plan.ranks > 1) {
    text += memory_line("parts of a bucket from other ranks", plan.memory().exchange);
  }
  text += memory_line(plan.no_engines.empty() ? "workspace of the largest convolution"
                                              : "workspace of convolutions: not known",
                      plan.workspace_bytes());
  text += memory_line("CUDA and libraries (estimate)", TrainingPlan::kLibraries);
  text += memory_line("total", plan.needed_bytes());
  text += fmt::format("  of {:.1f} MiB on the card: {}\n",
                      mib(plan.card.memory_bytes),
                      plan.fits() ? "it fits" : "IT DOES NOT FIT");
  text += fmt::format("  largest batch that fits: {} images per rank, {:.2f} MiB each\n",
                      plan.largest_batch(),
                      mib(plan.memory().bytes_per_image()));
  text += memory_line("page-locked on rank 0's host, for saving", memory.saved());
  return text + memory_line("in /dev/shm of a host (--keep-in-memory)", 2 * memory.saved());
}

std::string operations_text(const TrainingPlan& plan) {
  OpTotals all;
  std::string text = fmt::format(
      "operations of a step\n  {:<28} {:>6} {:>12} {:>12}\n", "op", "calls", "GFLOP", "MB moved");
  const auto add_line = [&](std::string_view op, const OpTotals& totals) {
    text += fmt::format("  {:<28} {:>6} {:>12.2f} {:>12.1f}\n",
                        op,
                        totals.calls,
                        gflop(totals.flops),
                        mb(totals.bytes));
  };
  for (const auto& [op, totals] : plan.totals_by_op()) {
    add_line(op, totals);
    all.calls += totals.calls;
    all.flops += totals.flops;
    all.bytes += totals.bytes;
  }
  add_line("total", all);
  const double images = static_cast<double>(plan.step.images);
  return text + fmt::format("  per image: {:.2f} GFLOP, {:.1f} MB\n",
                            gflop(all.flops) / images,
                            mb(all.bytes) / images);
}

std::string layers_text(const TrainingPlan& plan) {
  std::string text =
      fmt::format("layers, in both directions\n  {:<44} {:>12} {:>12}\n", "", "GFLOP", "MB moved");
  for (const LayerCost& layer : plan.step.layers) {
    text += fmt::format(
        "  {:<44} {:>12.2f} {:>12.1f}\n", layer.name, gflop(layer.flops), mb(layer.bytes));
  }
  return text;
}

std::string convolutions_text(const TrainingPlan& plan) {
  std::string text = fmt::format("convolutions: {} distinct calls\n", plan.convolutions.size());
  if (!plan.no_engines.empty()) text += fmt::format("  no engines: {}\n", plan.no_engines);
  for (const PlannedConvolution& call : plan.convolutions) {
    text += fmt::format("  {}x {}: {:.1f} GFLOP, {:.1f} MB\n",
                        call.calls,
                        call.problem.text(),
                        gflop(call.flops),
                        mb(call.bytes));
    if (call.choice.empty()) continue;
    text += fmt::format("     {}, workspace {:.1f} MiB", call.choice, mib(call.workspace_bytes));
    if (call.microseconds > 0) text += fmt::format(", {:.1f} us when timed", call.microseconds);
    text += "\n";
    for (const std::string& form : call.fused) text += fmt::format("     {}\n", form);
  }
  return text;
}

std::string speed_text(const TrainingPlan& plan) {
  const PredictionConstants& c = plan.constants;
  const double images = static_cast<double>(plan.step.images);
  std::string text = fmt::format(
      "speed of one {} in images per second (predicted, not measured)\n"
      "  {:.0f} GB/s, of which copies reach {:.2f}; {:.0f} TFLOP/s, of which products reach "
      "{:.2f};\n"
      "  engines reach {:.2f} of the op-by-op limit, and each op takes {:.1f} us to launch\n"
      "  {:<22} {:>9} {:>14} {:>14} {:>14} {:>10} {:>10}\n",
      plan.card.name,
      plan.card.dram_bytes_per_s / 1e9,
      c.dram,
      plan.peak_flops() / 1e12,
      c.products,
      c.reached,
      c.launch_s * 1e6,
      "scheme",
      "MB/image",
      "traffic limit",
      "compute limit",
      "op by op",
      "predicted",
      "step, ms");
  for (const Scheme scheme : kSchemes) {
    const SchemePrediction p = predict(plan.step, scheme, plan.card, plan.precision, c);
    text += fmt::format("  {:<22} {:>9.1f} {:>14.0f} {:>14.0f} {:>14.0f} {:>10.0f} {:>10.2f}\n",
                        name_of(scheme),
                        p.bytes / 1e6 / images,
                        images / p.traffic_s,
                        images / p.compute_s,
                        images / p.limit_s,
                        images / p.predicted_s,
                        p.predicted_s * 1e3);
  }
  return text + fmt::format("  Lockstep runs \"{}\", and \"{}\" in layers that --autotune fuses\n",
                            name_of(Scheme::kFusedBatchNorm),
                            name_of(Scheme::kStatsInConvolutions));
}

std::string scaling_text(const TrainingPlan& plan) {
  const PredictionConstants& c = plan.constants;
  std::string text = fmt::format(
      "scaling (predicted): {:.1f} MB of gradients in f32, {:.0f} GB/s of NVLink one way, of "
      "which {:.2f} are reached,\n  {:.0f} us a round, two rounds; backward() hides all buckets "
      "but the last of 25 MiB, or nothing\n",
      mb(plan.step.memory.gradients),
      plan.card.link_bytes_per_s / 1e9,
      c.link,
      c.latency_s * 1e6);
  for (int64_t ranks = 1;; ranks = std::min(2 * ranks, plan.ranks)) {
    const ScalingPrediction p = plan.scaled_to(ranks);
    text += fmt::format(
        "  {:>3} rank{} {:>10.0f} images/s, efficiency {:.1f} % (nothing hidden: {:.1f} %), "
        "all-reduce {:.2f} ms\n",
        ranks,
        ranks == 1 ? " " : "s",
        p.images_per_s,
        100 * p.efficiency,
        100 * p.unhidden,
        p.all_reduce_s * 1e3);
    if (ranks == plan.ranks) return text;
  }
}

// The trainers' flags that a step on a GPU depends on.
constexpr std::array<std::string_view, 28> kUsed = {"arch",
                                                    "preset",
                                                    "batch-size",
                                                    "batches-per-allreduce",
                                                    "shards",
                                                    "num-classes",
                                                    "cifar-stem",
                                                    "blur-pool",
                                                    "drop-path",
                                                    "train-crop-size",
                                                    "opt-level",
                                                    "dtype",
                                                    "master-weights",
                                                    "keep-batchnorm-fp32",
                                                    "opt",
                                                    "momentum",
                                                    "nesterov",
                                                    "muon-dtype",
                                                    "lookahead",
                                                    "clip-grad-norm",
                                                    "larc",
                                                    "larc-clip",
                                                    "trust-coefficient",
                                                    "ema",
                                                    "mixup",
                                                    "cutmix",
                                                    "random-erase",
                                                    "cutout"};

Options read_training(const std::vector<std::string>& typed) {
  const bool tutorials = std::ranges::any_of(typed, [](const std::string& word) {
    return word.ends_with("convnet") || word.ends_with("toy_net");
  });
  const bool has_preset = std::ranges::any_of(
      typed, [](const std::string& word) { return word.starts_with("--preset"); });
  // The last value of a flag counts. A network for photos is planned for photos.
  std::vector<std::string> line;
  if (!tutorials) line.emplace_back("--dataset=imagefolder");
  if (!has_preset) line.insert(line.end(), {"--batch-size=256", "--opt-level=O2"});
  line.insert(line.end(), typed.begin(), typed.end());
  const auto no_variable = [](const char*) -> const char* { return nullptr; };
  Options options =
      read_options(tutorials ? Program::kTrainConvnet : Program::kTrainResnet, line, no_variable);
  if (options.request != Request::kRun) {
    throw UsageError("the command line is not understood", {}, "lockstep plan --help");
  }
  for (const ResolvedFlag& flag : options.resolved()) {
    const bool is_ours = flag.name == "dataset" && flag.value == "imagefolder";
    if (is_ours || !options.given(flag.name)) continue;
    if (std::ranges::find(kUsed, flag.name) != kUsed.end()) continue;
    throw UsageError(fmt::format("lockstep plan does not look at --{}", flag.name),
                     "neither memory nor work of a step depends on it",
                     "lockstep plan --help");
  }
  return options;
}

ModelOptions planned_network(const RunRequest& request) {
  ModelOptions network = usual_network(request.arch, request.cifar_stem);
  network.classes = request.classes.value_or(network.classes);
  network.blur_pool = request.blur_pool;
  network.drop_path = request.drop_path;
  const bool takes_photos = network.image.height == 224;
  if (takes_photos) network.image.height = network.image.width = request.photos.train_crop;
  return network;
}

std::string heading(const TrainingPlan& plan, const std::string& arch) {
  return fmt::format("{}, {} parameters, {} images per rank, {} {}, on {} x {}\n",
                     arch,
                     plan.step.parameters,
                     plan.step.images,
                     name_of(plan.precision.level),
                     plan.precision.is_mixed() ? name_of(plan.precision.dtype) : "f32",
                     plan.ranks,
                     plan.card.name);
}

// Bytes and images are a rank's; images_per_s is of all ranks.
std::string json_text(const TrainingPlan& plan, const std::string& arch) {
  const ScalingPrediction all = plan.scaled_to(plan.ranks);
  const nlohmann::ordered_json json{
      {"images_per_s", all.images_per_s},
      {"efficiency", all.efficiency},
      {"predicted", true},
      {"arch", arch},
      {"gpu", plan.card.name},
      {"ranks", plan.ranks},
      {"batch_size", plan.step.images},
      {"opt_level", name_of(plan.precision.level)},
      {"dtype", plan.precision.is_mixed() ? name_of(plan.precision.dtype) : "f32"},
      {"parameters", plan.step.parameters},
      {"needed_bytes", plan.needed_bytes()},
      {"gpu_bytes", plan.card.memory_bytes},
      {"fits", plan.fits()},
      {"largest_batch_size", plan.largest_batch()},
      {"workspace_bytes", plan.workspace_bytes()},
      {"knows_workspace", plan.no_engines.empty()}};
  return json.dump(-1, ' ', true) + "\n";
}

}  // namespace

std::string plan_training(const PlanOptions& options) {
  const Options training = read_training(options.training);
  const RunRequest request = make_run_request(training);
  TrainingPlan plan{
      .card = find_gpu(options.gpu), .precision = request.precision, .ranks = options.ranks};
  const ModelOptions network = planned_network(request);
  const BatchDivision batch = divide_batch(request.batch, request.device, options.ranks, 1);
  const int64_t images = images_per_rank(batch, batch.images);
  const StepExtras extras = extras_of(request, batch);
  plan.micro_steps = batch.micro_steps;
  plan.step = run_dry_step(network, images, plan.precision, extras);
  plan.other_step = run_dry_step(network, 2 * images, plan.precision, extras);
  plan.convolutions = convolutions_of(plan.step);
  PlannedEngines planned;
  if (!options.plan_file.empty()) planned = read_engines(options.plan_file, plan.card);
  try {
    choose_engines(plan.card.cudnn_properties, plan.convolutions, planned);
  } catch (const EnvironmentError& error) {  // the rest needs no library
    if (!planned.empty()) throw;
    plan.no_engines = fmt::format("{} ({})", error.what(), error.why());
  }
  if (options.json) return json_text(plan, request.arch);
  return heading(plan, request.arch) + memory_text(plan, training.text("opt")) +
         operations_text(plan) + (options.layers ? layers_text(plan) : "") +
         convolutions_text(plan) + speed_text(plan) + scaling_text(plan);
}

}  // namespace lockstep::trainers
