#include "trainers/loop/lr_dry_run.h"

#include <algorithm>

#include <fmt/format.h>

#include "data/batch_plan.h"
#include "trainers/loop/schedule.h"

namespace lockstep::trainers {

std::vector<std::string> lr_lines(const RunRequest& request,
                                  const BatchDivision& batch,
                                  int64_t dataset_images) {
  const int64_t steps_per_epoch = data::steps_per_epoch({.dataset_size = dataset_images,
                                                         .global_batch = batch.images,
                                                         .micro_steps = batch.micro_steps,
                                                         .shards = batch.shards,
                                                         .groups = batch.bn_groups});
  const Schedule schedule(request.optimizer.schedule,
                          request.optimizer.base_lr(batch.images),
                          request.epochs,
                          steps_per_epoch);
  const int64_t begin = request.start_epoch * steps_per_epoch;
  const int64_t all_steps = request.epochs * steps_per_epoch - begin;
  const int64_t steps = std::min(all_steps, request.max_steps.value_or(all_steps));
  constexpr int64_t kFewSteps = 20;
  const int64_t stride = steps <= kFewSteps ? 1 : steps_per_epoch;
  std::vector<std::string> lines;
  for (int64_t first = begin; first < begin + steps; first += stride) {
    const int64_t last = std::min(first + stride, begin + steps) - 1;
    std::string line = fmt::format(
        "epoch {} step {} lr {:.7g}", first / steps_per_epoch, first + 1, schedule.lr(first));
    if (last > first) line += fmt::format(" to step {} lr {:.7g}", last + 1, schedule.lr(last));
    lines.push_back(line);
  }
  if (schedule.watches_validation()) lines.emplace_back("less the cuts of --lr-scheduler plateau");
  return lines;
}

}  // namespace lockstep::trainers
