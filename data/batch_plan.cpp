#include "data/batch_plan.h"

#include <algorithm>
#include <optional>

#include "core/check.h"
#include "core/error.h"
#include "core/round_up.h"

namespace lockstep::data {
namespace {

int64_t replicas_of(const BatchPlan& plan) {
  return plan.groups * plan.micro_steps;
}

void check(const BatchPlan& plan) {
  LS_CHECK(plan.dataset_size >= 1 && plan.global_batch >= 1 && plan.micro_steps >= 1 &&
               plan.groups >= 1 && plan.repeats >= 1 && plan.global_batch % replicas_of(plan) == 0,
           "[batch_plan] got {} images, {} a step, {} micro-steps, {} groups",
           plan.dataset_size,
           plan.global_batch,
           plan.micro_steps,
           plan.groups);
  LS_CHECK(plan.shards >= 1 && plan.shards % plan.groups == 0 && plan.rank >= 0 &&
               plan.rank < plan.ranks && plan.ranks <= plan.shards,
           "[batch_plan] got {} shards, {} groups, rank {} of {}",
           plan.shards,
           plan.groups,
           plan.rank,
           plan.ranks);
}

SamplerOptions sampler_of(const BatchPlan& plan, int64_t epoch) {
  return {.size = plan.dataset_size,
          .replicas = replicas_of(plan),
          .seed = plan.seed,
          .epoch = epoch,
          .shuffle = plan.shuffle,
          .repeats = plan.repeats};
}

int64_t first_shard(const BatchPlan& plan, int64_t rank) {
  return rank * plan.shards / plan.ranks;
}

}  // namespace

int64_t steps_per_epoch(const BatchPlan& plan) {
  check(plan);
  const int64_t group_batch = plan.global_batch / replicas_of(plan);
  const int64_t rounding = plan.drop_last ? 0 : group_batch - 1;
  return (samples_per_replica(sampler_of(plan, 0)) + rounding) / group_batch;
}

EpochPlan::EpochPlan(const BatchPlan& plan, int64_t epoch) : plan_(plan), epoch_(epoch) {
  check(plan);
  order_ = epoch_order(sampler_of(plan, epoch));
}

MicroBatch EpochPlan::micro_batch(int64_t step, int64_t micro) const {
  const SamplerOptions sampler = sampler_of(plan_, epoch_);
  const int64_t replicas = sampler.replicas;
  const int64_t full = plan_.global_batch / replicas;
  const int64_t start = step * full;
  const int64_t group_images = std::min(full, samples_per_replica(sampler) - start);
  LS_CHECK(step >= 0 && group_images >= 1 && micro >= 0 && micro < plan_.micro_steps,
           "[batch_plan] step: got step {}, micro-step {}",
           step,
           micro);
  const int64_t first = first_shard(plan_, plan_.rank);
  const int64_t end = first_shard(plan_, plan_.rank + 1);
  const int64_t per_group = plan_.shards / plan_.groups;

  MicroBatch batch{.epoch = epoch_,
                   .images = {},
                   .shards = {.offsets = {0},
                              .total = plan_.shards,
                              .first = first,
                              .groups = plan_.groups,
                              .step_images = group_images * replicas,
                              .micro_step = micro}};
  for (int64_t shard = first; shard < end; ++shard) {
    const int64_t replica = shard / per_group * plan_.micro_steps + micro;
    const int64_t k = shard % per_group;
    for (int64_t j = k * group_images / per_group; j < (k + 1) * group_images / per_group; ++j) {
      batch.images.push_back(dealt_view(order_, sampler, replica, start + j));
    }
    batch.shards.offsets.push_back(static_cast<int64_t>(batch.images.size()));
  }
  return batch;
}

int64_t chunk_count(const EvaluationPlan& plan) {
  LS_CHECK(plan.dataset_size >= 1 && plan.chunk_images >= 1 && plan.chunks_at_once >= 1 &&
               plan.rank >= 0 && plan.rank < plan.ranks,
           "[evaluation_plan] got {} images in chunks of {}, {} at once, rank {} of {}",
           plan.dataset_size,
           plan.chunk_images,
           plan.chunks_at_once,
           plan.rank,
           plan.ranks);
  return ceil_div(plan.dataset_size, plan.chunk_images);
}

int64_t evaluation_batches(const EvaluationPlan& plan) {
  const int64_t mine = (chunk_count(plan) + plan.ranks - 1 - plan.rank) / plan.ranks;
  return ceil_div(mine, plan.chunks_at_once);
}

int64_t chunk_of(const EvaluationPlan& plan, int64_t batch, int64_t k) {
  return plan.rank + plan.ranks * (batch * plan.chunks_at_once + k);
}

MicroBatch evaluation_batch(const EvaluationPlan& plan, int64_t batch) {
  LS_CHECK(
      batch >= 0 && batch < evaluation_batches(plan), "[evaluation_plan] batch: got {}", batch);
  MicroBatch result{.epoch = 0, .images = {}, .shards = {.offsets = {0}}};
  for (int64_t k = 0; k < plan.chunks_at_once; ++k) {
    const int64_t first = chunk_of(plan, batch, k) * plan.chunk_images;
    const int64_t end = std::min(first + plan.chunk_images, plan.dataset_size);
    if (first >= end) break;
    for (int64_t i = first; i < end; ++i) result.images.push_back(i);
    result.shards.offsets.push_back(end - first + result.shards.offsets.back());
  }
  result.shards.total = result.shards.local();
  result.shards.step_images = result.shards.images();
  return result;
}

BatchSequence training_sequence(const BatchPlan& plan, int64_t first_step, int64_t end_step) {
  const int64_t epoch_steps = steps_per_epoch(plan);
  LS_CHECK(epoch_steps >= 1 && first_step >= 0 && first_step <= end_step,
           "[batch_plan] steps: got [{}, {}) in epochs of {}",
           first_step,
           end_step,
           epoch_steps);
  const int64_t local_shards = first_shard(plan, plan.rank + 1) - first_shard(plan, plan.rank);
  const int64_t group_batch =
      std::min(plan.global_batch / replicas_of(plan), samples_per_replica(sampler_of(plan, 0)));
  const int64_t per_group = plan.shards / plan.groups;
  const int64_t largest_shard = ceil_div(group_batch, per_group);
  std::optional<EpochPlan> current;
  return {.count = (end_step - first_step) * plan.micro_steps,
          .max_images = local_shards * largest_shard,
          .repeats = plan.repeats,
          .at = [plan, first_step, epoch_steps, current](int64_t number) mutable {
            const int64_t step = first_step + number / plan.micro_steps;
            const int64_t epoch = step / epoch_steps;
            if (!current || current->epoch() != epoch) current.emplace(plan, epoch);
            return current->micro_batch(step % epoch_steps, number % plan.micro_steps);
          }};
}

BatchSequence evaluation_sequence(const EvaluationPlan& plan) {
  return {.count = evaluation_batches(plan),
          .max_images = std::min(plan.chunks_at_once * plan.chunk_images, plan.dataset_size),
          .at = [plan](int64_t number) { return evaluation_batch(plan, number); }};
}

}  // namespace lockstep::data
