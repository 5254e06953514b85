#include "trainers/loop/step_window.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "core/tree.h"

namespace lockstep::trainers {

SlowestRank slowest_rank(std::span<const RankSeconds> ranks) {
  const auto slowest = std::ranges::max_element(ranks, std::less(), &RankSeconds::own);
  double others = 0;
  for (const RankSeconds& rank : ranks) others += rank.own;
  others -= slowest->own;
  if (others <= 0) return {};
  const double mean = others / static_cast<double>(ranks.size() - 1);
  return {.rank = static_cast<int>(slowest - ranks.begin()), .skew = slowest->own / mean - 1};
}

void StepWindow::add(const nn::CrossEntropy& result) {
  const std::span<const float> leaves = result.loss.value().span<float>();
  micro_steps_.emplace_back(leaves.begin(), leaves.end());
  for (const int32_t rank : result.target_rank.span<int32_t>()) {
    correct1_ += rank < 1 ? 1 : 0;
    correct5_ += rank < 5 ? 1 : 0;
    ++images_;
  }
}

void StepWindow::end_step(const RankSeconds& seconds) {
  for_each_tree_merge(std::ssize(micro_steps_), [&](int64_t into, int64_t from) {
    std::vector<float>& sums = micro_steps_[static_cast<size_t>(into)];
    std::ranges::transform(
        sums, micro_steps_[static_cast<size_t>(from)], sums.begin(), std::plus());
  });
  std::vector<float>& shards = micro_steps_.front();
  for_each_tree_merge(std::ssize(shards), [&](int64_t into, int64_t from) {
    shards[static_cast<size_t>(into)] += shards[static_cast<size_t>(from)];
  });
  losses_.push_back(shards.empty() ? 0 : shards.front());
  micro_steps_.clear();
  seconds_ += seconds;
}

WindowTotals StepWindow::exchange(Communicator& ranks, bool stop) {
  std::array<int64_t, 4> counts = {correct1_, correct5_, images_, stop ? 1 : 0};
  ranks.all_reduce_sum(std::span<int64_t>(counts));
  ranks.all_reduce_sum(std::span<float>(losses_));
  WindowTotals totals{.losses = std::exchange(losses_, {}),
                      .correct1 = counts[0],
                      .correct5 = counts[1],
                      .images = counts[2],
                      .stop = counts[3] != 0,
                      .ranks = std::vector<RankSeconds>(static_cast<size_t>(ranks.size()))};
  ranks.all_gather(std::as_bytes(std::span(&seconds_, 1)),
                   std::as_writable_bytes(std::span(totals.ranks)));
  correct1_ = correct5_ = images_ = 0;
  seconds_ = {};
  return totals;
}

}  // namespace lockstep::trainers
