#include "inspect/plan/training_plan.h"

#include <algorithm>

namespace lockstep::trainers {
namespace {

constexpr int64_t kBucket = comm::BucketCaps{}.bytes;

bool is_product(std::string_view op) {
  return op.starts_with("conv2d") || op.starts_with("linear");
}

// With Scheme::kStatsInConvolutions a convolution computes the forward statistics from the output
// that it writes, and the backward sums from the gradient that it writes: one operand less is read.
double bytes_of(const LedgerEntry& entry, Scheme scheme) {
  const auto bytes = static_cast<double>(entry.bytes);
  switch (scheme) {
    case Scheme::kUnfused:
      return static_cast<double>(entry.unfused_bytes);
    case Scheme::kFusedBatchNorm:
      return bytes;
    case Scheme::kStatsInConvolutions:
      if (entry.op == "batch_norm_shard_stats") return 0;
      return entry.op == "batch_norm_shard_sums" ? bytes / 2 : bytes;
  }
  return bytes;
}

}  // namespace

std::string_view name_of(Scheme scheme) {
  switch (scheme) {
    case Scheme::kUnfused:
      return "unfused";
    case Scheme::kFusedBatchNorm:
      return "fused batch norm";
    case Scheme::kStatsInConvolutions:
      return "stats in convolutions";
  }
  return "?";
}

SchemePrediction predict(const DryStep& step,
                         Scheme scheme,
                         const GpuCard& card,
                         const PrecisionConfig& precision,
                         const PredictionConstants& constants) {
  const double bandwidth = card.dram_bytes_per_s * constants.dram;
  const double flops =
      (precision.is_mixed() ? card.half_flops : card.f32_flops) * constants.products;
  SchemePrediction result;
  for (const LedgerEntry& entry : step.ledger) {
    const double bytes = bytes_of(entry, scheme);
    const double compute_s = is_product(entry.op) ? static_cast<double>(entry.flops) / flops : 0;
    result.bytes += bytes;
    result.compute_s += compute_s;
    result.limit_s += std::max(bytes / bandwidth, compute_s);
  }
  result.traffic_s = result.bytes / bandwidth;
  result.predicted_s = result.limit_s / constants.reached +
                       constants.launch_s * static_cast<double>(step.ledger.size());
  return result;
}

double all_reduce_s(int64_t bytes,
                    int64_t ranks,
                    const GpuCard& card,
                    const PredictionConstants& constants) {
  const auto n = static_cast<double>(ranks);
  const double through_link = 2 * (n - 1) / n * static_cast<double>(bytes);
  return ranks == 1
             ? 0
             : 2 * constants.latency_s + through_link / (card.link_bytes_per_s * constants.link);
}

int64_t TrainingPlan::workspace_bytes() const {
  int64_t largest = 0;
  for (const PlannedConvolution& call : convolutions)
    largest = std::max(largest, call.workspace_bytes);
  return largest;
}

MemoryPlan TrainingPlan::memory() const {
  return {.images = step.images,
          .other_images = other_step.images,
          .step = step.memory,
          .other_step = other_step.memory,
          .workspace = workspace_bytes(),
          .exchange = exchange_bytes(step.memory.gradients, ranks, kBucket)};
}

int64_t TrainingPlan::needed_bytes() const {
  return memory().needed() + kLibraries;
}

int64_t TrainingPlan::largest_batch() const {
  return memory().largest_batch(card.memory_bytes - kLibraries);
}

std::map<std::string_view, OpTotals> TrainingPlan::totals_by_op() const {
  std::map<std::string_view, OpTotals> totals;
  for (const LedgerEntry& entry : step.ledger) {
    OpTotals& op = totals[entry.op];
    ++op.calls;
    op.flops += entry.flops;
    op.bytes += entry.bytes;
  }
  return totals;
}

ScalingPrediction TrainingPlan::scaled_to(int64_t count) const {
  const int64_t bytes = step.memory.gradients;
  const auto seconds = [&](const DryStep& part) {
    return predict(part, Scheme::kFusedBatchNorm, card, precision, constants).predicted_s;
  };
  DryStep update;  // after the last micro-step
  update.ledger.assign(step.ledger.begin() + step.update_begins, step.ledger.end());
  const auto repeats = static_cast<double>(micro_steps);
  const double step_s = repeats * seconds(step) - (repeats - 1) * seconds(update);
  const double all_s = all_reduce_s(bytes, count, card, constants);
  const double last_s = all_reduce_s(std::min(bytes, kBucket), count, card, constants);
  return {
      .all_reduce_s = all_s,
      .images_per_s = static_cast<double>(count * micro_steps * step.images) / (step_s + last_s),
      .efficiency = step_s / (step_s + last_s),
      .unhidden = step_s / (step_s + all_s)};
}

}  // namespace lockstep::trainers
