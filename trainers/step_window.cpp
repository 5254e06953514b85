#include "trainers/step_window.h"

#include <array>
#include <utility>

#include "core/tree.h"

namespace lockstep::trainers {

void StepWindow::add(const nn::CrossEntropy& result) {
  const std::span<const float> leaves = result.loss.value().span<float>();
  std::vector<float> nodes(leaves.begin(), leaves.end());
  for_each_tree_merge(std::ssize(nodes), [&](int64_t into, int64_t from) {
    nodes[static_cast<size_t>(into)] += nodes[static_cast<size_t>(from)];
  });
  losses_.push_back(nodes.empty() ? 0 : nodes.front());
  for (const int32_t rank : result.target_rank.span<int32_t>()) {
    correct1_ += rank < 1 ? 1 : 0;
    correct5_ += rank < 5 ? 1 : 0;
    ++images_;
  }
}

WindowTotals StepWindow::exchange(Communicator& ranks, bool stop) {
  std::array<int64_t, 4> counts = {correct1_, correct5_, images_, stop ? 1 : 0};
  ranks.all_reduce_sum(std::span<int64_t>(counts));
  ranks.all_reduce_sum(std::span<float>(losses_));
  WindowTotals totals{.losses = std::exchange(losses_, {}),
                      .correct1 = counts[0],
                      .correct5 = counts[1],
                      .images = counts[2],
                      .stop = counts[3] != 0};
  correct1_ = correct5_ = images_ = 0;
  return totals;
}

}  // namespace lockstep::trainers
