#include "trainers/planner/memory_plan.h"

#include <algorithm>

#include <fmt/core.h>

#include "comm/gather.h"
#include "core/cuda/device.h"
#include "core/round_up.h"
#include "trainers/report/errors.h"

namespace lockstep::trainers {
namespace {

double in_mib(int64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

// Says what to try when the plan does not fit.
std::string smaller(const MemoryPlan& plan, int64_t memory) {
  if (plan.step.fixed() + plan.step.evaluation > memory) {
    return "a smaller --val-batch-size or --arch, or a GPU with more memory";
  }
  const int64_t images = plan.largest_batch(memory);
  return images > 0 ? fmt::format("at most {} images per rank and micro-step", images)
                    : "a smaller --arch, or a GPU with more memory";
}

void check_memory(const MemoryPlan& plan, int64_t memory) {
  const StepMemory& step = plan.step;
  if (plan.needed() > memory) {
    throw EnvironmentError(
        fmt::format("a step of {} images per rank does not fit the GPU's memory", plan.images),
        fmt::format("{:.1f} MiB are needed and {:.1f} are free: {:.1f} of weights, gradients and "
                    "optimizer, {:.1f} of images, {:.1f} of cuDNN's workspace, {:.1f} of "
                    "activations and what else a step makes",
                    in_mib(plan.needed()),
                    in_mib(memory),
                    in_mib(step.fixed()),
                    in_mib(step.batches),
                    in_mib(plan.workspace),
                    in_mib(plan.needed() - plan.workspace - step.fixed() - step.batches)),
        smaller(plan, memory),
        Remedy::kSmallerBatch);
  }
  suggest_batch(std::min(plan.images - 1, plan.largest_batch(memory / 10 * 9)));
}

// Returns how many ranks use this one's device. Indices do not tell: a launcher may show each rank
// only its own device. A collective call.
int64_t ranks_on_device(Communicator& ranks) {
  const std::string& mine = cuda::device_properties().uuid;
  return std::ranges::count(comm::gather_texts(ranks, mine), mine);
}

}  // namespace

int64_t MemoryPlan::bytes_per_image() const {
  const int64_t more = images - other_images;
  if (more == 0) return 1;
  // The holes between tensors grow as the tensors do.
  const double holes = static_cast<double>(step.placed) / static_cast<double>(step.made);
  const auto made = static_cast<double>(step.made - other_step.made) * holes;
  const int64_t grows = step.batches - other_step.batches + static_cast<int64_t>(made);
  return std::max<int64_t>(1, grows / more);
}

int64_t MemoryPlan::largest_batch(int64_t memory) const {
  const int64_t left = memory - step.fixed() - beside_steps();
  if (step.evaluation > StepMemory::in_pieces(left)) return 0;
  const int64_t spare = StepMemory::in_pieces(left - step.batches) - step.placed;
  const int64_t fewer = spare >= 0 ? 0 : 1;
  return std::max<int64_t>(0, images + spare / bytes_per_image() - fewer);
}

int64_t exchange_bytes(int64_t gradients, int64_t ranks, int64_t bucket_bytes) {
  return std::min(gradients, bucket_bytes) * (ranks - 1) / ranks;
}

StepExtras extras_of(const RunRequest& request, const BatchDivision& batch) {
  return {.mixup = request.augmentation.mixup > 0 || request.augmentation.cutmix > 0,
          .erases = request.augmentation.erases(),
          .optimizer = request.optimizer,
          .shards = ceil_div(batch.shards, batch.ranks),
          .micro_steps = batch.micro_steps,
          .views = request.test.views};
}

int64_t images_per_rank(const BatchDivision& batch, int64_t images) {
  return ceil_div(images, batch.micro_steps * batch.ranks);
}

MemoryPlan plan_memory(const ResolvedRun& run,
                       const ModelOptions& network,
                       int64_t train_images,
                       const TestedImages& tested) {
  const RunRequest& request = run.request;
  const BatchDivision& batch = run.batch;
  StepExtras extras = extras_of(request, batch);
  extras.graph = run.runs_as_graph();
  extras.evaluated = std::min(request.test.batch, tested.count);
  extras.test_image = tested.shape;
  MemoryPlan plan;
  const int64_t of_rank = images_per_rank(batch, std::min(batch.images, train_images));
  plan.images = std::max<int64_t>(2, of_rank);  // one alone has no variance, in groups of all ranks
  plan.other_images = 2 * plan.images;
  plan.step = run_dry_step(network, plan.images, request.precision, extras).memory;
  plan.other_step = run_dry_step(network, plan.other_images, request.precision, extras).memory;
  if (run.over_nccl()) {
    plan.exchange = exchange_bytes(plan.step.gradients, batch.ranks, request.exchange.caps.bytes);
  }
  if (const Dtype wire = request.exchange.wire; wire != Dtype::kF32) {  // buckets of copies
    const auto f32 = static_cast<int64_t>(size_of(Dtype::kF32));
    plan.exchange += plan.step.gradients / f32 * static_cast<int64_t>(size_of(wire));
  }
  return plan;
}

int64_t settle_memory(const ResolvedRun& run,
                      const ModelOptions& network,
                      const data::DatasetPair& data,
                      Communicator& ranks,
                      int64_t workspace) {
  const RunRequest& request = run.request;
  if (!data.train || request.device != Device::kCuda) return 0;
  const TestedImages tested = {.count = request.no_eval ? 0 : data.test->size(),
                               .shape = data.test->image_shape()};
  MemoryPlan plan = plan_memory(run, network, data.train->size(), tested);
  plan.workspace = workspace;
  const int64_t sharing = ranks_on_device(ranks);
  run_or_end_all_ranks(
      ranks, [&] { check_memory(plan, static_cast<int64_t>(cuda::free_bytes()) / sharing); });
  return plan.step.pool();
}

}  // namespace lockstep::trainers
