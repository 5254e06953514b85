#include "trainers/config/batch_division.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include <fmt/format.h>

#include "core/check.h"
#include "core/error.h"
#include "core/words.h"
#include "data/batch_plan.h"
#include "data/distributed_sampler.h"
#include "kernels/support/cuda/shard_limits.h"
#include "trainers/options/flag_table.h"

namespace lockstep::trainers {
namespace {

constexpr std::array<int64_t, 4> kUsualRanks = {1, 2, 4, 8};

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

// Lists values, each of one flag, that make the run work with all other flags unchanged.
class Advice {
 public:
  Advice(const BatchRequest& asked, const BatchDivision& cut) : cut_(cut), names_(asked.names) {
    if (asked.global) {
      suggest(names_.images, cut.images, [](BatchDivision& changed, int64_t value) {
        changed.images = value;
      });
    } else {
      const int64_t per_rank = cut.ranks * cut.micro_steps;
      suggest("-b", cut.images / per_rank, [=](BatchDivision& changed, int64_t value) {
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
  void suggest(std::string_view flag, int64_t from, Change&& change) {
    const std::vector<int64_t> values = nearest_values(from, [&](int64_t value) {
      BatchDivision changed = cut_;
      change(changed, value);
      return fits(changed);
    });
    if (!values.empty()) hints_.push_back(fmt::format("{} {}", flag, fmt::join(values, " or ")));
  }

  void suggest_micro_steps(bool keeps_batch) {
    const int64_t images = cut_.images / cut_.micro_steps;
    suggest(
        "--batches-per-allreduce", cut_.micro_steps, [=](BatchDivision& changed, int64_t value) {
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
  throw UsageError(
      fmt::format("-b {} and --global-batch-size {} differ", per_rank, images),
      asked.micro_steps == 1
          ? fmt::format("-b is per rank: {} images per step on {} ranks", from_ranks, ranks)
          : fmt::format(
                "-b is per rank and micro-step: {} images per step on {} ranks in {} of them",
                from_ranks,
                ranks,
                asked.micro_steps),
      fmt::format("--global-batch-size {} alone, or -b {} alone", images, per_rank));
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

// Each of `ranks` ranks then owns a subtree of the sum over `shards` leaves (core/tree.h).
bool is_subtree_each(int64_t shards, int64_t ranks) {
  return ranks == 1 || (shards % ranks == 0 && is_power_of_two(shards / ranks));
}

// The fewest shards, not fewer than now, that these groups divide and that each of these rank
// counts can share as subtrees; 0 when there are none.
int64_t shards_for(const BatchDivision& batch, std::span<const int64_t> rank_counts) {
  for (int64_t shards = batch.shards; shards <= kMaxShards; ++shards) {
    BatchDivision changed = batch;
    changed.shards = shards;
    const bool shared = std::all_of(rank_counts.begin(), rank_counts.end(), [&](int64_t ranks) {
      changed.ranks = ranks;
      return is_subtree_each(shards, ranks) && device_fits(changed);
    });
    if (shared && shards % batch.bn_groups == 0) return shards;
  }
  return 0;
}

// Images of an epoch that each batch-norm group gets in each micro-step.
int64_t dealt(const BatchDivision& batch, int64_t dataset_images) {
  return data::samples_per_replica({.size = dataset_images,
                                    .replicas = batch.bn_groups * batch.micro_steps,
                                    .repeats = batch.repeats});
}

// "512 images per step in 4 micro-steps, 8 shards, 8 BN groups".
std::string cut_text(const BatchDivision& batch) {
  std::string text = counted(batch.images, "image") + " per step";
  if (batch.micro_steps > 1) text += fmt::format(" in {} micro-steps", batch.micro_steps);
  return fmt::format(
      "{}, {}, {}", text, counted(batch.shards, "shard"), counted(batch.bn_groups, "BN group"));
}

std::string without_tree(const ExchangeConfig& exchange, const std::string& run) {
  if (exchange.algorithm == Algorithm::kNone) {
    return fmt::format(
        "same bits: off, --algorithm none exchanges nothing: the ranks' weights drift apart, rank "
        "0's are evaluated and saved ({})",
        run);
  }
  return fmt::format(
      "same bits: off, --algorithm {} sums in an order that depends on the number of ranks ({}); "
      "on with --algorithm tree",
      algorithm_name(exchange),
      run);
}

}  // namespace

BatchDivision divide_batch(const RunRequest& request, int64_t ranks, int64_t threads) {
  LS_CHECK(ranks >= 1 && threads >= 1, "[divide_batch] ranks {}, threads {}", ranks, threads);
  const BatchRequest& asked = request.batch;
  const int64_t images = images_per_step(asked, ranks);
  const int64_t shards = usual_shards(images / (ranks * asked.micro_steps),
                                      request.device == Device::kCuda ? 1 : threads);
  const BatchDivision division{.ranks = ranks,
                               .images = images,
                               .micro_steps = asked.micro_steps,
                               .shards = asked.shards.value_or(ranks * shards),
                               .bn_groups = asked.bn_groups.value_or(ranks),
                               .drop_last = asked.drop_last,
                               .repeats = asked.repeats,
                               .device = request.device};
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

void check_steps(const BatchDivision& batch, int64_t dataset_images) {
  const int64_t replicas = batch.bn_groups * batch.micro_steps;
  const int64_t images = dealt(batch, dataset_images);
  if (images == 0 && !batch.drop_last) {
    throw UsageError("--aug-repeats leaves no step of an epoch",
                     fmt::format("{} images are dealt to {} batch-norm groups and micro-steps",
                                 dataset_images,
                                 replicas),
                     "fewer --bn-groups or --batches-per-allreduce");
  }
  if (!batch.drop_last) return;
  if (images >= batch.images / replicas) return;
  throw UsageError(
      "--drop-last leaves no step of an epoch",
      fmt::format(
          "a step takes {} images, and {} are there to train on", batch.images, dataset_images),
      "a smaller -b or --global-batch-size, or leave --drop-last out: the one step is short");
}

std::optional<Mixing> mixing_of(const RunRequest& request,
                                const BatchDivision& batch,
                                int64_t dataset_images) {
  if (request.augmentation.mixup == 0 && request.augmentation.cutmix == 0) return std::nullopt;
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
    if (!fits(changed) || !is_subtree_each(changed.shards, batch.ranks)) continue;
    const int64_t unmixed = unmixed_with(changed.shards);
    if (unmixed >= fewest) continue;
    fewest = unmixed;
    mixing.remedy = fmt::format("{} {}", request.batch.names.shards, changed.shards);
  }
  return mixing;
}

void check_mixing(const RunRequest& request, const BatchDivision& batch, int64_t dataset_images) {
  const std::optional<Mixing> mixing = mixing_of(request, batch, dataset_images);
  if (!mixing || mixing->unmixed < mixing->images) return;
  throw UsageError(
      fmt::format("{} would change nothing",
                  request.augmentation.mixup > 0 ? "--mixup" : "--cutmix"),
      fmt::format(
          "images of a shard are mixed, and {} images per step in {} shards are one in each",
          mixing->images,
          batch.micro_steps * batch.shards),
      fmt::format("fewer {}, or more images per step", request.batch.names.shards));
}

std::vector<int64_t> same_bits_ranks(const BatchDivision& batch, const ExchangeConfig& exchange) {
  if (!exchange.keeps_bits()) return {};
  std::vector<int64_t> counts(kUsualRanks.begin(), kUsualRanks.end());
  if (std::find(counts.begin(), counts.end(), batch.ranks) == counts.end()) {
    counts.push_back(batch.ranks);
    std::sort(counts.begin(), counts.end());
  }
  std::erase_if(counts, [&](int64_t ranks) { return !is_subtree_each(batch.shards, ranks); });
  return counts;
}

std::string same_bits_text(const BatchDivision& batch, const ExchangeConfig& exchange) {
  const std::string cut = cut_text(batch);
  if (!exchange.keeps_bits()) return without_tree(exchange, cut);
  if (!is_subtree_each(batch.shards, batch.ranks)) {
    std::string text = fmt::format(
        "same bits: off, {} ranks cannot share the shards as subtrees ({})", batch.ranks, cut);
    const int64_t shards = shards_for(batch, std::array{batch.ranks});
    if (shards != 0) text += fmt::format("; on with --shards {}", shards);
    return text;
  }
  const std::vector<int64_t> counts = same_bits_ranks(batch, exchange);
  std::string text = fmt::format(
      "same bits on {} rank{} ({})", fmt::join(counts, ","), counts.back() == 1 ? "" : "s", cut);
  if (std::includes(counts.begin(), counts.end(), kUsualRanks.begin(), kUsualRanks.end()))
    return text;
  std::vector<int64_t> wanted(kUsualRanks.begin(), kUsualRanks.end());
  wanted.push_back(batch.ranks);
  if (const int64_t shards = shards_for(batch, wanted)) {
    text += fmt::format("; on 1,2,4,8 ranks with --shards {}", shards);
  }
  return text;
}

}  // namespace lockstep::trainers
