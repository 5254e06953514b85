#include "trainers/config/resolve_run.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include <fmt/format.h>

#include "core/check.h"
#include "core/error.h"

namespace lockstep::trainers {
namespace {

constexpr int64_t kMostShards = 65536;
constexpr std::array<int64_t, 4> kUsualRanks = {1, 2, 4, 8};

struct Cut {
  int64_t images;  // in the data set
  int64_t batch;   // B
  int64_t micro_steps;
  int64_t shards;
  int64_t groups;
  int64_t ranks;

  bool batch_fits() const { return batch % (groups * micro_steps) == 0; }
  bool groups_fit() const { return shards % groups == 0; }
  bool ranks_fit() const { return ranks <= shards; }
  bool fits() const {
    return batch_fits() && groups_fit() && ranks_fit() && batch <= images && shards <= kMostShards;
  }
};

Cut cut_of(const RunConfig& run, int64_t images) {
  return {.images = images,
          .batch = run.global_batch,
          .micro_steps = run.micro_steps,
          .shards = run.shards,
          .groups = run.bn_groups,
          .ranks = run.ranks};
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

template <class Change>
void suggest(std::vector<std::string>& hints,
             const Cut& cut,
             std::string_view flag,
             int64_t from,
             Change&& change) {
  const std::vector<int64_t> values = nearest_values(from, [&](int64_t value) {
    Cut changed = cut;
    change(changed, value);
    return changed.fits();
  });
  if (!values.empty()) hints.push_back(fmt::format("{} {}", flag, fmt::join(values, " or ")));
}

// Values of one flag each that make the run work with all others as they are.
std::string nearest_that_work(const RunConfig& run, const Cut& cut) {
  std::vector<std::string> hints;
  if (run.asked.global_batch_size) {
    suggest(hints, cut, "--global-batch-size", cut.batch, [](Cut& changed, int64_t value) {
      changed.batch = value;
    });
  } else {
    const int64_t per_rank = cut.ranks * cut.micro_steps;
    suggest(hints, cut, "-b", cut.batch / per_rank, [=](Cut& changed, int64_t value) {
      changed.batch = value * per_rank;
    });
  }
  if (cut.micro_steps > 1) {
    const int64_t images = run.asked.global_batch_size ? 0 : cut.batch / cut.micro_steps;
    suggest(
        hints, cut, "--batches-per-allreduce", cut.micro_steps, [=](Cut& changed, int64_t value) {
          changed.micro_steps = value;
          if (images != 0) changed.batch = images * value;
        });
  }
  suggest(hints, cut, "--shards", cut.shards, [](Cut& changed, int64_t value) {
    changed.shards = value;
  });
  suggest(hints, cut, "--bn-groups", cut.groups, [](Cut& changed, int64_t value) {
    changed.groups = value;
  });
  if (hints.empty()) return "fewer ranks, or leave out --shards and --bn-groups";
  return fmt::format("{}", fmt::join(hints, ", or "));
}

void settle_batch(RunConfig& run) {
  const auto& asked = run.asked;
  const int64_t per_rank = asked.batch_size.value_or(run.default_batch_size);
  const int64_t from_ranks = per_rank * run.ranks * run.micro_steps;
  run.global_batch = asked.global_batch_size.value_or(from_ranks);
  if (!asked.batch_size || from_ranks == run.global_batch) return;
  throw UsageError(
      fmt::format("-b {} and --global-batch-size {} differ", per_rank, run.global_batch),
      run.micro_steps == 1
          ? fmt::format("-b is per rank: {} images a step on {} ranks", from_ranks, run.ranks)
          : fmt::format("-b is per rank and micro-step: {} images a step on {} ranks in {} of them",
                        from_ranks,
                        run.ranks,
                        run.micro_steps),
      fmt::format("--global-batch-size {} alone, or -b {} alone", run.global_batch, per_rank));
}

void settle_shards_and_groups(RunConfig& run) {
  const int64_t images_per_rank = run.global_batch / (run.ranks * run.micro_steps);
  const int64_t wanted = run.device == Device::kCuda ? 1 : run.threads;
  const int64_t parallel = std::max<int64_t>(1, std::min(wanted, images_per_rank));
  const auto per_rank = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(parallel)));
  run.shards = run.asked.shards.value_or(run.ranks * per_rank);
  run.bn_groups = run.asked.bn_groups.value_or(run.ranks);
}

void check(const RunConfig& run, int64_t dataset_images) {
  const Cut cut = cut_of(run, dataset_images);
  if (!cut.ranks_fit()) {
    throw UsageError(
        fmt::format("--shards {} is too few for {} ranks", cut.shards, cut.ranks),
        "each rank works on a shard at least",
        fmt::format("{}, or at most {} ranks", nearest_that_work(run, cut), cut.shards));
  }
  if (!cut.groups_fit()) {
    throw UsageError(
        fmt::format("{} shards do not make {} equal BN groups", cut.shards, cut.groups),
        "--bn-groups must divide --shards: a group is a whole number of shards",
        nearest_that_work(run, cut));
  }
  if (!cut.batch_fits()) {
    const std::string parts =
        cut.micro_steps == 1
            ? fmt::format("{} BN groups", cut.groups)
            : fmt::format("{} BN groups in each of {} micro-steps", cut.groups, cut.micro_steps);
    throw UsageError(
        fmt::format(
            "{} images a step do not make {} equal parts", cut.batch, cut.groups * cut.micro_steps),
        fmt::format("they are dealt evenly to {}", parts),
        nearest_that_work(run, cut));
  }
  if (cut.batch > dataset_images) {
    throw UsageError(fmt::format("{} images a step are more than the data set has", cut.batch),
                     fmt::format("it has {} images for training", dataset_images),
                     nearest_that_work(run, cut));
  }
}

bool is_power_of_two(int64_t value) {
  return std::has_single_bit(static_cast<uint64_t>(value));
}

// Each of `ranks` ranks then owns a subtree of the sum over `shards` leaves (core/tree.h).
bool is_subtree_each(int64_t shards, int64_t ranks) {
  return ranks == 1 || (shards % ranks == 0 && is_power_of_two(shards / ranks));
}

std::string plural(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// The fewest shards, not fewer than now, that these groups divide and that each of these rank
// counts can share as subtrees; 0 when there are none.
int64_t shards_for(const RunConfig& run, std::span<const int64_t> rank_counts) {
  for (int64_t shards = run.shards; shards <= kMostShards; ++shards) {
    const bool shared = std::all_of(rank_counts.begin(), rank_counts.end(), [&](int64_t ranks) {
      return is_subtree_each(shards, ranks);
    });
    if (shared && shards % run.bn_groups == 0) return shards;
  }
  return 0;
}

// "512 images a step in 4 micro-steps, 8 shards, 8 BN groups".
std::string run_text(const RunConfig& config) {
  std::string text = plural(config.global_batch, "image") + " a step";
  if (config.micro_steps > 1) text += fmt::format(" in {} micro-steps", config.micro_steps);
  return fmt::format(
      "{}, {}, {}", text, plural(config.shards, "shard"), plural(config.bn_groups, "BN group"));
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
      "on "
      "with --algorithm tree",
      algorithm_name(exchange),
      run);
}

}  // namespace

void resolve_run(RunConfig& config, int64_t ranks, int64_t threads, int64_t dataset_images) {
  LS_CHECK(ranks >= 1 && threads >= 1, "[resolve_run] ranks {}, threads {}", ranks, threads);
  config.ranks = ranks;
  config.threads = threads;
  settle_batch(config);
  settle_shards_and_groups(config);
  check(config, dataset_images);
}

std::vector<int64_t> reach(const RunConfig& config) {
  if (!config.exchange.keeps_bits()) return {};
  std::vector<int64_t> counts(kUsualRanks.begin(), kUsualRanks.end());
  if (std::find(counts.begin(), counts.end(), config.ranks) == counts.end()) {
    counts.push_back(config.ranks);
    std::sort(counts.begin(), counts.end());
  }
  std::erase_if(counts, [&](int64_t ranks) { return !is_subtree_each(config.shards, ranks); });
  return counts;
}

std::string reach_text(const RunConfig& config) {
  const std::string run = run_text(config);
  if (!config.exchange.keeps_bits()) return without_tree(config.exchange, run);
  if (!is_subtree_each(config.shards, config.ranks)) {
    std::string text = fmt::format(
        "same bits: off, {} ranks cannot share the shards as subtrees ({})", config.ranks, run);
    const int64_t shards = shards_for(config, std::array{config.ranks});
    if (shards != 0) text += fmt::format("; on with --shards {}", shards);
    return text;
  }
  const std::vector<int64_t> counts = reach(config);
  std::string text = fmt::format(
      "same bits on {} rank{} ({})", fmt::join(counts, ","), counts.back() == 1 ? "" : "s", run);
  if (std::includes(counts.begin(), counts.end(), kUsualRanks.begin(), kUsualRanks.end()))
    return text;
  std::vector<int64_t> wanted(kUsualRanks.begin(), kUsualRanks.end());
  wanted.push_back(config.ranks);
  if (const int64_t shards = shards_for(config, wanted)) {
    text += fmt::format("; on 1,2,4,8 ranks with --shards {}", shards);
  }
  return text;
}

}  // namespace lockstep::trainers
