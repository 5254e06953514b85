#include "engine/settings/batch_division.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "core/check.h"
#include "core/error.h"
#include "core/shards.h"
#include "core/words.h"
#include "data/batch_plan.h"
#include "data/distributed_sampler.h"
#include "kernels/support/cuda/shard_limits.h"

namespace lockstep {
namespace {

bool batch_fits(const BatchDivision& cut) {
  return cut.images % (cut.bn_groups * cut.micro_steps) == 0;
}
bool groups_fit(const BatchDivision& cut) {
  return cut.shards % cut.bn_groups == 0;
}
bool ranks_fit(const BatchDivision& cut) {
  return cut.ranks <= cut.shards;
}
bool device_fits(const BatchDivision& cut) {
  return cut.device != Device::kCuda ||
         (cut.shards <= kernels::cuda::kMaxShardsOfRank * cut.ranks &&
          cut.shards <= kernels::cuda::kMaxTreeLeaves * cut.bn_groups);
}
bool fits(const BatchDivision& cut) {
  return batch_fits(cut) && groups_fit(cut) && ranks_fit(cut) && device_fits(cut) &&
         cut.shards <= kMaxShards;
}

// The nearest values below and above `from` that work; both, one or none.
template <class Works>
std::vector<int64_t> nearest_values(int64_t from, Works&& works) {
  constexpr int64_t kFarthest = int64_t{1} << 17;
  std::vector<int64_t> found;
  for (int64_t value = from - 1; value >= 1 && value >= from - kFarthest; --value) {
    if (works(value)) {
      found.push_back(value);
      break;
    }
  }
  for (int64_t value = from + 1; value <= from + kFarthest; ++value) {
    if (works(value)) {
      found.push_back(value);
      break;
    }
  }
  return found;
}

// Lists values, each of one part, that make the run work with all other parts unchanged.
class Advice {
 public:
  Advice(const BatchRequest& asked, const BatchDivision& cut) : cut_(cut), names_(asked.names) {
    if (asked.global) {
      suggest(names_.images, cut.images, [](BatchDivision& changed, int64_t value) {
        changed.images = value;
      });
    } else {
      const int64_t per_rank = cut.ranks * cut.micro_steps;
      suggest(names_.per_rank, cut.images / per_rank, [=](BatchDivision& changed, int64_t value) {
        changed.images = value * per_rank;
      });
    }
    if (cut.micro_steps > 1) suggest_micro_steps(asked.global.has_value());
    suggest(names_.shards, cut.shards, [](BatchDivision& changed, int64_t value) {
      changed.shards = value;
    });
    suggest(names_.bn_groups, cut.bn_groups, [](BatchDivision& changed, int64_t value) {
      changed.bn_groups = value;
    });
  }

  std::string text() const {
    if (hints_.empty()) {
      return fmt::format("fewer ranks, or leave out {} and {}", names_.shards, names_.bn_groups);
    }
    return fmt::format("{}", fmt::join(hints_, ", or "));
  }

 private:
  template <class Change>
  void suggest(std::string_view name, int64_t from, Change&& change) {
    const std::vector<int64_t> values = nearest_values(from, [&](int64_t value) {
      BatchDivision changed = cut_;
      change(changed, value);
      return fits(changed);
    });
    if (!values.empty()) hints_.push_back(fmt::format("{} {}", name, fmt::join(values, " or ")));
  }

  void suggest_micro_steps(bool keeps_batch) {
    const int64_t images = cut_.images / cut_.micro_steps;
    suggest(names_.micro_steps, cut_.micro_steps, [=](BatchDivision& changed, int64_t value) {
      changed.micro_steps = value;
      if (!keeps_batch) changed.images = images * value;
    });
  }

  const BatchDivision& cut_;
  const BatchNames& names_;
  std::vector<std::string> hints_;
};

int64_t images_per_step(const BatchRequest& asked, int64_t ranks) {
  const int64_t per_rank = asked.per_rank.value_or(asked.default_per_rank);
  const int64_t from_ranks = per_rank * ranks * asked.micro_steps;
  const int64_t images = asked.global.value_or(from_ranks);
  if (!asked.per_rank || from_ranks == images) return images;
  const BatchNames& names = asked.names;
  throw UsageError(
      fmt::format("{} {} and {} {} differ", names.per_rank, per_rank, names.images, images),
      asked.micro_steps == 1
          ? fmt::format(
                "{} is per rank: {} images per step on {} ranks", names.per_rank, from_ranks, ranks)
          : fmt::format(
                "{} is per rank and micro-step: {} images per step on {} ranks in {} of them",
                names.per_rank,
                from_ranks,
                ranks,
                asked.micro_steps),
      fmt::format("{} {} alone, or {} {} alone", names.images, images, names.per_rank, per_rank));
}

// One shard for each thread where there are enough images, and a power of two of them.
int64_t usual_shards(int64_t images_per_rank, int64_t threads) {
  const int64_t parallel = std::max<int64_t>(1, std::min(threads, images_per_rank));
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(parallel)));
}

void check(const BatchDivision& cut, const BatchRequest& asked) {
  const auto advice = [&] { return Advice(asked, cut).text(); };
  if (!ranks_fit(cut)) {
    throw UsageError(
        fmt::format("{} {} is too few for {} ranks", asked.names.shards, cut.shards, cut.ranks),
        "each rank needs at least one shard",
        fmt::format("{}, or at most {} ranks", advice(), cut.shards));
  }
  if (!groups_fit(cut)) {
    throw UsageError(
        fmt::format("{} shards do not make {} equal BN groups", cut.shards, cut.bn_groups),
        fmt::format("{} must divide {}: a group is a whole number of shards",
                    asked.names.bn_groups,
                    asked.names.shards),
        advice());
  }
  if (!device_fits(cut)) {
    throw UsageError(fmt::format("{} {} is too many for CUDA on {}",
                                 asked.names.shards,
                                 cut.shards,
                                 counted(cut.ranks, "rank")),
                     fmt::format("on CUDA a rank works on at most {} shards, and a BN group has at "
                                 "most {}",
                                 kernels::cuda::kMaxShardsOfRank,
                                 kernels::cuda::kMaxTreeLeaves),
                     advice());
  }
  if (!batch_fits(cut)) {
    const std::string parts =
        cut.micro_steps == 1
            ? fmt::format("{} BN groups", cut.bn_groups)
            : fmt::format("{} BN groups in each of {} micro-steps", cut.bn_groups, cut.micro_steps);
    throw UsageError(fmt::format("{} images per step do not make {} equal parts",
                                 cut.images,
                                 cut.bn_groups * cut.micro_steps),
                     fmt::format("they are dealt evenly to {}", parts),
                     advice());
  }
}

bool is_power_of_two(int64_t value) {
  return std::has_single_bit(static_cast<uint64_t>(value));
}

// Images of an epoch that each batch-norm group gets in each micro-step.
int64_t dealt(const BatchDivision& batch, int64_t dataset_images) {
  return data::samples_per_replica({.size = dataset_images,
                                    .replicas = batch.bn_groups * batch.micro_steps,
                                    .repeats = batch.repeats});
}

}  // namespace

BatchDivision divide_batch(const BatchRequest& asked,
                           Device device,
                           int64_t ranks,
                           int64_t threads) {
  LS_CHECK(ranks >= 1 && threads >= 1, "[divide_batch] ranks {}, threads {}", ranks, threads);
  const int64_t images = images_per_step(asked, ranks);
  const int64_t shards =
      usual_shards(images / (ranks * asked.micro_steps), device == Device::kCuda ? 1 : threads);
  const BatchDivision division{.ranks = ranks,
                               .images = images,
                               .micro_steps = asked.micro_steps,
                               .shards = asked.shards.value_or(ranks * shards),
                               .bn_groups = asked.bn_groups.value_or(ranks),
                               .drop_last = asked.drop_last,
                               .repeats = asked.repeats,
                               .device = device};
  check(division, asked);
  return division;
}

int64_t steps_per_epoch(const BatchDivision& batch, int64_t dataset_images) {
  return data::steps_per_epoch({.dataset_size = dataset_images,
                                .global_batch = batch.images,
                                .micro_steps = batch.micro_steps,
                                .shards = batch.shards,
                                .groups = batch.bn_groups,
                                .drop_last = batch.drop_last,
                                .repeats = batch.repeats});
}

void check_steps(const BatchRequest& asked, const BatchDivision& batch, int64_t dataset_images) {
  const BatchNames& names = asked.names;
  const int64_t replicas = batch.bn_groups * batch.micro_steps;
  const int64_t images = dealt(batch, dataset_images);
  if (images == 0 && !batch.drop_last) {
    throw UsageError(fmt::format("{} leaves no step of an epoch", names.repeats),
                     fmt::format("{} images are dealt to {} batch-norm groups and micro-steps",
                                 dataset_images,
                                 replicas),
                     fmt::format("fewer {} or {}", names.bn_groups, names.micro_steps));
  }
  if (!batch.drop_last) return;
  if (images >= batch.images / replicas) return;
  throw UsageError(
      fmt::format("{} leaves no step of an epoch", names.drop_last),
      fmt::format(
          "a step takes {} images, and {} are there to train on", batch.images, dataset_images),
      fmt::format("a smaller {} or {}, or leave {} out: the one step is short",
                  names.per_rank,
                  names.images,
                  names.drop_last));
}

Mixing mixing_of(const BatchDivision& batch, int64_t dataset_images) {
  const int64_t replicas = batch.bn_groups * batch.micro_steps;
  const int64_t images = std::min(batch.images / replicas, dealt(batch, dataset_images));
  const auto unmixed_with = [&](int64_t shards) {
    const int64_t of_group = shards / batch.bn_groups;
    int64_t odd = 0;
    for (int64_t k = 0; k < of_group; ++k) {
      odd += ((k + 1) * images / of_group - k * images / of_group) % 2;
    }
    return odd * replicas;
  };
  Mixing mixing{.images = images * replicas, .unmixed = unmixed_with(batch.shards)};
  int64_t fewest = mixing.unmixed;
  BatchDivision changed = batch;
  for (changed.shards = batch.shards - 1; changed.shards > 0 && fewest > 0; --changed.shards) {
    if (!fits(changed) || !shares_subtrees(changed, batch.ranks)) continue;
    const int64_t unmixed = unmixed_with(changed.shards);
    if (unmixed >= fewest) continue;
    fewest = unmixed;
    mixing.better_shards = changed.shards;
  }
  return mixing;
}

bool shares_subtrees(const BatchDivision& batch, int64_t ranks) {
  return ranks == 1 || (batch.shards % ranks == 0 && is_power_of_two(batch.shards / ranks));
}

int64_t shards_for(const BatchDivision& batch, std::span<const int64_t> rank_counts) {
  for (int64_t shards = batch.shards; shards <= kMaxShards; ++shards) {
    BatchDivision changed = batch;
    changed.shards = shards;
    const bool shared = std::all_of(rank_counts.begin(), rank_counts.end(), [&](int64_t ranks) {
      changed.ranks = ranks;
      return shares_subtrees(changed, ranks) && device_fits(changed);
    });
    if (shared && shards % batch.bn_groups == 0) return shards;
  }
  return 0;
}

}  // namespace lockstep
