#include "trainers/planner/plan_command.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "trainers/config/optimizer_config.h"
#include "trainers/planner/plan_report.h"

namespace lockstep::trainers {
namespace {

PrecisionConfig precision_of(const PlanOptions& options) {
  PrecisionConfig config{.level = meant(kOptLevelNames, options.opt_level),
                         .dtype = meant(kHalfTypeNames, options.dtype)};
  if (config.level == OptLevel::kO3) config.master_weights = config.keep_batchnorm_fp32 = false;
  return config;
}

StepExtras extras_of(const std::vector<std::string>& flags) {
  constexpr std::array<std::string_view, 5> kUsed = {
      "ema", "larc", "larc-clip", "mixup", "trust-coefficient"};
  const auto no_variable = [](const char*) -> const char* { return nullptr; };
  const Options options = read_options(Program::kTrainResnet, flags, no_variable);
  if (options.request != Request::kRun) {
    throw UsageError("the command line is not understood", {}, "lockstep plan --help");
  }
  for (const ResolvedFlag& flag : options.resolved()) {
    if (!options.given(flag.name) || std::ranges::find(kUsed, flag.name) != kUsed.end()) continue;
    throw UsageError(fmt::format("lockstep plan does not look at --{}", flag.name),
                     "it is about a step of SGD with momentum",
                     "lockstep plan --help");
  }
  const OptimizerConfig config = make_optimizer_config(options);
  return {
      .larc = config.larc.has_value(), .mixup = options.number("mixup") > 0, .ema = config.ema > 0};
}

std::string heading(const TrainingPlan& plan, const PlanOptions& options) {
  const int64_t parameters = plan.step.parameters;
  return fmt::format("{}, {} parameters, {} images a rank, {} {}, on {} x {}\n",
                     options.arch,
                     parameters,
                     options.batch_size,
                     name_of(plan.precision.level),
                     plan.precision.is_mixed() ? name_of(plan.precision.dtype) : "f32",
                     options.ranks,
                     plan.card.name);
}

}  // namespace

std::string plan_training(const PlanOptions& options) {
  TrainingPlan plan{
      .card = find_gpu(options.gpu), .precision = precision_of(options), .ranks = options.ranks};
  const ModelOptions network = usual_network(options.arch, options.cifar_stem);
  const StepExtras extras = extras_of(options.training);
  plan.step = run_dry_step(network, options.batch_size, plan.precision, extras);
  plan.half_step = run_dry_step(network, options.batch_size / 2, plan.precision, extras);
  plan.convolutions = convolutions_of(plan.step);
  PlannedEngines planned;
  if (!options.plan_file.empty()) planned = read_engines(options.plan_file, plan.card);
  try {
    choose_engines(plan.card.cudnn_properties, plan.convolutions, planned);
  } catch (const EnvironmentError& error) {  // the rest needs no library
    if (!planned.empty()) throw;
    plan.no_engines = fmt::format("{} ({})", error.what(), error.why());
  }
  return heading(plan, options) + memory_text(plan) + operations_text(plan) +
         (options.layers ? layers_text(plan) : "") + convolutions_text(plan) + speed_text(plan) +
         scaling_text(plan);
}

}  // namespace lockstep::trainers
