#include "trainers/config/run_plan.h"

#include <fmt/ranges.h>

namespace lockstep::trainers {

RunPlan make_run_plan(const ResolvedRun& run, std::span<const comm::Bucket> buckets) {
  const ExchangeConfig& exchange = run.request.exchange;
  RunPlan plan{.global_batch = run.batch.images,
               .micro_steps = run.batch.micro_steps,
               .shards = run.batch.shards,
               .bn_groups = run.batch.bn_groups,
               .seed = run.request.seed,
               .algorithm = std::string(algorithm_name(exchange)),
               .transport = run.transport,
               .wire = std::string(name_of(exchange.wire)),
               .predivide = exchange.predivide,
               .overlap = exchange.overlap,
               .buckets = {},
               .plan_choices = run.plan_choices,
               .reach = reach(run.batch, exchange)};
  plan.buckets.reserve(buckets.size());
  for (const comm::Bucket& bucket : buckets) {
    plan.buckets.push_back({.tensors = std::ssize(bucket.parameters), .bytes = bucket.bytes});
  }
  return plan;
}

std::vector<comm::HandshakeField> handshake_fields(const RunPlan& plan) {
  using Kind = comm::HandshakeField::Kind;
  std::vector<std::string> buckets;
  buckets.reserve(plan.buckets.size());
  for (const BucketSize& bucket : plan.buckets) {
    buckets.push_back(fmt::format("{}:{}", bucket.tensors, bucket.bytes));
  }
  return {{Kind::kArgument, "images a step", std::to_string(plan.global_batch)},
          {Kind::kArgument, "micro-steps", std::to_string(plan.micro_steps)},
          {Kind::kArgument, "shards", std::to_string(plan.shards)},
          {Kind::kArgument, "BN groups", std::to_string(plan.bn_groups)},
          {Kind::kArgument, "seed", std::to_string(plan.seed)},
          {Kind::kArgument, "algorithm", plan.algorithm},
          {Kind::kEnvironment, "transport", plan.transport},
          {Kind::kArgument, "wire dtype", plan.wire},
          {Kind::kArgument, "predivide factor", fmt::format("{}", plan.predivide)},
          {Kind::kArgument, "overlap", plan.overlap ? "on" : "off"},
          {Kind::kEnvironment, "gradient buckets", fmt::format("{}", fmt::join(buckets, " "))},
          {Kind::kEnvironment, "cuDNN's engines", plan.plan_choices},
          {Kind::kArgument, "reach", fmt::format("{}", fmt::join(plan.reach, ","))}};
}

}  // namespace lockstep::trainers
