#include "comm/clock_offsets.h"

#include <array>
#include <limits>
#include <span>

#include "comm/gather.h"

namespace lockstep::comm {
namespace {

using std::chrono::nanoseconds;

// The first barriers wake sleeping ranks. More barriers tighten the bounds where ranks share a
// core.
constexpr size_t kBarriers = 40;

struct Barrier {
  int64_t entered = 0;  // on the rank's clock, in nanoseconds
  int64_t left = 0;
};

ClockOffset offset_of(std::span<const Barrier> mine, std::span<const Barrier> rank0s) {
  int64_t lower = std::numeric_limits<int64_t>::min();
  int64_t upper = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < mine.size(); ++i) {
    lower = std::max(lower, mine[i].entered - rank0s[i].left);
    upper = std::min(upper, mine[i].left - rank0s[i].entered);
  }
  // Halves each bound first, because the sum of two clocks' readings may be large.
  const auto middle = static_cast<double>(lower) / 2 + static_cast<double>(upper) / 2;
  return {.at = nanoseconds(mine.back().left),
          .offset = middle,
          .error = static_cast<double>(upper - lower) / 2};
}

}  // namespace

std::vector<ClockOffset> measure_clock_offsets(Communicator& ranks,
                                               FunctionRef<nanoseconds()> now) {
  std::array<Barrier, kBarriers> mine;
  for (Barrier& barrier : mine) {
    barrier.entered = now().count();
    ranks.barrier();
    barrier.left = now().count();
  }
  const std::vector<Barrier> all = gather_values(ranks, std::span<const Barrier>(mine));
  const std::span<const Barrier> rank0s = std::span(all).first(kBarriers);
  std::vector<ClockOffset> offsets = {{.at = nanoseconds(rank0s.back().left)}};
  for (size_t rank = 1; rank < static_cast<size_t>(ranks.size()); ++rank) {
    offsets.push_back(offset_of(std::span(all).subspan(rank * kBarriers, kBarriers), rank0s));
  }
  return offsets;
}

std::vector<ClockOffset> measure_clock_offsets(Communicator& ranks) {
  return measure_clock_offsets(ranks, [] {
    return std::chrono::duration_cast<nanoseconds>(
        std::chrono::steady_clock::now().time_since_epoch());
  });
}

double ClockMap::on_rank0(nanoseconds time) const {
  const auto since_first = static_cast<double>((time - first_.at).count());
  const auto between = static_cast<double>((last_.at - first_.at).count());
  const double drift = between > 0 ? (last_.offset - first_.offset) / between : 0;
  return static_cast<double>(time.count()) - (first_.offset + drift * since_first);
}

}  // namespace lockstep::comm
