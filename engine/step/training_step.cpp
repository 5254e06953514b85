#include "engine/step/training_step.h"

#include <chrono>
#include <string>

#include <fmt/core.h>

#include "core/error.h"
#include "nn/layers.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A device's sums are read later.
bool gradients_carry_stops(const StepInputs& p) {
  return p.stream.device() == Device::kCpu && p.settings.exchange.keeps_replicas();
}

comm::ReducerOptions reducer_options(const StepInputs& p, Timeline* timeline) {
  comm::ReducerOptions options = reducer_options(p.settings.exchange, p.batch.micro_steps);
  options.on_device = p.exchange;
  options.timeline = timeline;
  if (gradients_carry_stops(p)) options.ask = p.hooks.asked_to_stop;
  options.exchange = p.hooks.exchange;
  return options;
}

// The batch's groups, or the one of a norm that convert_sync_batchnorm() has changed.
bool groups_span_ranks(const StepInputs& p) {
  const BatchDivision& batch = p.batch;
  bool spans = any_group_spans_ranks(batch.shards, batch.bn_groups, batch.ranks);
  p.model.apply([&](nn::Module& module) {
    const auto* const norm = dynamic_cast<const nn::BatchNorm*>(&module);
    if (norm != nullptr && norm->groups() == nn::BatchNormGroups::kOne) spans |= batch.ranks > 1;
  });
  return spans;
}

nn::CrossEntropy loss_of(const StepInputs& p,
                         const Var& logits,
                         const Tensor& labels,
                         const kernels::ClassLossParams& params) {
  const LossConfig& loss = p.settings.loss;
  if (p.hooks.loss) return {own_loss(p.hooks.loss, logits, labels), {}, {}};
  if (!loss.binary) return nn::softmax_cross_entropy(logits, labels, params);
  return nn::binary_cross_entropy(logits, labels, params, loss.target_threshold);
}

}  // namespace

Var own_loss(const nn::LossFunction& loss, const Var& output, const Tensor& targets) {
  Var leaves = loss(output, targets);
  const Shape expected{output.shards().local()};
  if (leaves.defined() && leaves.shape() == expected && leaves.dtype() == Dtype::kF32) {
    return leaves;
  }
  const std::string found =
      leaves.defined() ? fmt::format("{} of {}", to_string(leaves.shape()), name_of(leaves.dtype()))
                       : "nothing";
  throw UsageError(fmt::format("the loss is {}, expected {} of f32", found, to_string(expected)),
                   "it has a value for each shard of this rank, which sum to the step's loss",
                   "sum each shard's losses, and divide by output.shards().step_images");
}

TrainingStep::TrainingStep(const StepInputs& inputs, const StepRange& range, StepObserver& observer)
    : inputs_(inputs),
      observer_(observer),
      reducer_(inputs_.ranks,
               inputs_.stream,
               inputs_.model.parameters(),
               inputs_.model.parameter_names(),
               reducer_options(inputs_, observer_.timeline())),
      batch_norm_peers_(inputs_.ranks, observer_.timeline()),
      groups_span_ranks_(groups_span_ranks(inputs_)),
      update_(inputs_.settings,
              inputs_.batch.images,
              inputs_.stream,
              inputs_.model,
              range.per_epoch,
              inputs_.hooks.update),
      batches_(inputs_, range, observer_.timeline()),
      skipped_(inputs_.data.train->size(), inputs_.hooks.warn),
      graph_(inputs_.stream, runs_as_graph(), static_cast<size_t>(inputs_.pool_bytes)) {}

TrainingStep::Seconds TrainingStep::take(int64_t number) {
  observer_.begin_step(number + 1);
  const TimelineSpan span(observer_.timeline(), kStepSpan, number + 1);
  const Start start = {.traffic = inputs_.ranks.traffic(),
                       .batch_norm_s = batch_norm_peers_.seconds(),
                       .data_s = batches_.waited_seconds(),
                       .loader = batches_.seconds()};
  if (update_.trains_fewer_from(number)) graph_.forget();
  if (runs_as_graph()) {
    take_as_graph(start, number);
  } else {
    update_.optimizer().zero_grad();
    int64_t images = 0;
    for (int64_t micro = 0; micro < inputs_.batch.micro_steps; ++micro) {
      if (micro > 0) reducer_.next_micro_step();
      const TrainingBatches::MicroStep batch = next_batch();
      const auto memory = use_memory();
      window_.add(forward_backward(batch.images, batch.labels, batch.mix));
      images += batch.shards().images();
    }
    sum_and_update(start, images, number);
  }
  if (number + 1 == update_.end()) update_.finish();
  return {.all = seconds_since(start.time), .data = batches_.waited_seconds() - start.data_s};
}

WindowTotals TrainingStep::exchange_figures(bool stop) {
  WindowTotals totals = window_.exchange(inputs_.ranks, stop, skipped_.noted());
  if (totals.skipped_photos > 0) skipped_.agree(inputs_.ranks);
  return totals;
}

void TrainingStep::sum_and_update(const Start& start, int64_t images, int64_t number) {
  observer_.before_sums();
  const auto memory = use_memory();
  observer_.in_phase(kSumsSpan, [&] { reducer_.finish(); });
  log_exchange(start, images, reducer_.times());
  observer_.in_phase(kUpdateSpan, [&] { update_.step(number); });
}

void TrainingStep::take_as_graph(const Start& start, int64_t number) {
  const TrainingBatches::MicroStep batch = next_batch();
  const auto step = [&](const Var& images, const Tensor& labels, const Tensor& mix) {
    update_.optimizer().zero_grad();
    nn::CrossEntropy figures = forward_backward(images, labels, mix);
    reducer_.finish();
    update_.step(number);
    return figures;
  };
  observer_.in_phase(kGraphSpan,
                     [&] { window_.add(graph_.run(batch.images, batch.labels, batch.mix, step)); });
  if (graph_.repeated()) inputs_.model.count_step();
  log_exchange(start, batch.shards().images(), {});
}

TrainingBatches::MicroStep TrainingStep::next_batch() {
  TrainingBatches::GroupPeers peers;
  if (groups_span_ranks_) peers = {&batch_norm_peers_, reducer_.device_peers()};
  TrainingBatches::MicroStep batch =
      batches_.next(peers, [&](const Shards& shards) { return observer_.listener(shards); });
  skipped_.note(batch.skipped);
  observer_.begin_micro_step(batch.images);
  return batch;
}

nn::CrossEntropy TrainingStep::forward_backward(const Var& images,
                                                const Tensor& labels,
                                                const Tensor& mix) {
  const Shards& shards = images.shards();
  // A batch-norm group's images are those of one DDP process and micro-step.
  const int64_t batch = shards.step_images / (shards.groups * inputs_.batch.micro_steps);
  const LossConfig& loss = inputs_.settings.loss;
  nn::CrossEntropy result;
  observer_.in_phase(kForwardSpan, [&] {
    observer_.begin_pass(StepObserver::Pass::kForward);
    result = loss_of(inputs_,
                     inputs_.model.forward(images),
                     labels,
                     {.label_smoothing = static_cast<float>(loss.label_smoothing),
                      .mix = mix,
                      .divide_by = loss.div_batch ? batch : 1});
  });
  observer_.in_phase(kBackwardSpan, [&] {
    observer_.begin_pass(StepObserver::Pass::kBackward);
    result.loss.backward(update_.seed(images.shards().local()));
    observer_.end_backward();
  });
  return result;
}

// Own time ends where waiting begins, so a rank that others wait for is not blamed for their delay.
void TrainingStep::log_exchange(const Start& start,
                                int64_t images,
                                const comm::ExchangeTimes& exchange) {
  const double all_s = seconds_since(start.time);
  const double batch_norm_s = batch_norm_peers_.seconds() - start.batch_norm_s;
  const double exposed_s = exchange.exposed_s + batch_norm_s;
  const RankSeconds seconds = {.own = all_s - exposed_s,
                               .exposed = exposed_s,
                               .hidden = exchange.hidden_s,
                               .loader = batches_.seconds() - start.loader};
  const Traffic& traffic = inputs_.ranks.traffic();
  window_.end_step(seconds);
  exchange_log_.add(
      {.begin = start.time,
       .seconds = seconds,
       .exchange = exchange,
       .traffic = {.moved_bytes = traffic.moved_bytes - start.traffic.moved_bytes,
                   .reduced_bytes = traffic.reduced_bytes - start.traffic.reduced_bytes},
       .images = images});
}

}  // namespace lockstep
