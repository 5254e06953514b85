#include "trainers/loop/training_parts.h"

#include <algorithm>

#include "trainers/checkpoint/checkpoint_record.h"
#include "trainers/config/augmentation_config.h"
#include "trainers/loop/evaluation_outputs.h"
#include "trainers/loop/training_data.h"
#include "trainers/report/process.h"

namespace lockstep::trainers {
namespace {

ImageChanges changes_of(const RunRequest& request, const data::Dataset& train) {
  const AugmentationConfig& asked = request.augmentation;
  return {.augmentation = augmentation(asked, request.seeds.run, train),
          .normalize = normalization(request.normalize, train),
          .erase = asked.erase,
          .cutout = asked.cutout,
          .mixup = asked.mixup,
          .cutmix = asked.cutmix};
}

}  // namespace

StepInputs step_inputs(const ResolvedRun& run,
                       const data::DatasetPair& data,
                       Communicator& ranks,
                       Stream& stream,
                       nn::Module& model) {
  return {.settings = run.request,
          .batch = run.batch,
          .data = data,
          .ranks = ranks,
          .stream = stream,
          .model = model,
          .changes = changes_of(run.request, *data.train),
          .as_graph = run.runs_as_graph()};
}

StepInputs with_program(StepInputs inputs, Console& console, const std::optional<Fault>& fault) {
  inputs.hooks = {.warn = warn_of_images(console), .asked_to_stop = stop_requested};
  if (fault && fault->breaks_exchange()) {
    inputs.hooks.exchange =
        disturbed_exchange(*fault, inputs.settings.exchange.algorithm, inputs.stream.device());
  }
  return inputs;
}

StepRange step_range(const TrainingParts& parts) {
  const TrainingSettings& settings = parts.settings;
  const int64_t per_epoch = steps_per_epoch(parts.batch, parts.data.train->size());
  const int64_t begin = settings.start_epoch * per_epoch;
  const int64_t first = parts.start ? parts.start->steps : begin;
  int64_t end = settings.steps(per_epoch);
  if (settings.max_steps) end = std::min(end, begin + *settings.max_steps);
  if (parts.replay) end = std::min(end, parts.replay->step);
  return {.per_epoch = per_epoch, .first = first, .end = std::max(end, first)};
}

TrainingPlan training_plan(const TrainingParts& parts) {
  const RunRequest& request = parts.run.request;
  TrainingPlan plan{.range = step_range(parts),
                    .test = evaluation_task(request, parts.data, parts.model, parts.console),
                    .evaluation_epochs = parts.replay || request.no_eval ? 0 : request.eval_freq,
                    .early_stopping = parts.replay ? EarlyStoppingConfig{} : request.early_stopping,
                    .figure_steps = request.print_freq,
                    .start = parts.start};
  if (plan.start) check_place(*plan.start, plan.range.per_epoch);
  return plan;
}

}  // namespace lockstep::trainers
