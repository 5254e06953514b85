#include "trainers/report/same_bits.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "core/words.h"

namespace lockstep::trainers {
namespace {

constexpr std::array<int64_t, 4> kUsualRanks = {1, 2, 4, 8};

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

std::vector<int64_t> same_bits_ranks(const BatchDivision& batch, const ExchangeConfig& exchange) {
  if (!exchange.keeps_bits()) return {};
  std::vector<int64_t> counts(kUsualRanks.begin(), kUsualRanks.end());
  if (std::find(counts.begin(), counts.end(), batch.ranks) == counts.end()) {
    counts.push_back(batch.ranks);
    std::sort(counts.begin(), counts.end());
  }
  std::erase_if(counts, [&](int64_t ranks) { return !shares_subtrees(batch, ranks); });
  return counts;
}

std::string same_bits_text(const BatchDivision& batch, const ExchangeConfig& exchange) {
  const std::string cut = cut_text(batch);
  if (!exchange.keeps_bits()) return without_tree(exchange, cut);
  if (!shares_subtrees(batch, batch.ranks)) {
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
