#include "comm/schedule.h"

#include <vector>

#include <gtest/gtest.h>

namespace lockstep::comm::schedule_test {
namespace {

constexpr int kMaxRanks = 17;

constexpr bool slices_tile(int64_t count, int ranks) {
  int64_t end = 0;
  for (int i = 0; i < ranks; ++i) {
    const Slice slice = slice_of(count, ranks, i);
    if (slice.begin != end || slice.count < count / ranks || slice.count > count / ranks + 1) {
      return false;
    }
    end = slice.end();
  }
  return end == count;
}

constexpr bool all_slices_tile() {
  for (int ranks = 1; ranks <= kMaxRanks; ++ranks) {
    for (const int64_t count : {0, 1, ranks - 1, ranks, ranks + 1, 7919, 1 << 30}) {
      if (!slices_tile(count, ranks)) return false;
    }
  }
  return true;
}
static_assert(all_slices_tile());

constexpr bool slices_of_units_tile() {
  for (int ranks = 1; ranks <= kMaxRanks; ++ranks) {
    for (const int64_t count : {0, 1, 63, 64, 65, 64 * ranks, 7919}) {
      int64_t end = 0;
      for (int i = 0; i < ranks; ++i) {
        const Slice slice = slice_of_units(count, 64, ranks, i);
        if (slice.count > 0 && slice.begin % 64 != 0) return false;
        if (slice.begin != end || slice.count < 0) return false;
        end = slice.end();
      }
      if (end != count) return false;
    }
  }
  return true;
}
static_assert(slices_of_units_tile());

constexpr bool neighbors_agree() {
  for (int ranks = 1; ranks <= kMaxRanks; ++ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      const int right = right_of(rank, ranks);
      if (left_of(right, ranks) != rank) return false;
      for (int step = 0; step < ring_steps(ranks); ++step) {
        if (ring_reduce_step(rank, ranks, step).send !=
                ring_reduce_step(right, ranks, step).receive ||
            ring_gather_step(rank, ranks, step).send !=
                ring_gather_step(right, ranks, step).receive) {
          return false;
        }
      }
    }
  }
  return true;
}
static_assert(neighbors_agree());

// [rank][slice][source]: how often the values of a source are in that rank's version of a slice.
using Terms = std::vector<std::vector<std::vector<int>>>;

Terms own_values(int ranks) {
  const auto n = static_cast<size_t>(ranks);
  Terms terms(n, std::vector<std::vector<int>>(n, std::vector<int>(n)));
  for (size_t rank = 0; rank < n; ++rank) {
    for (auto& slice : terms[rank]) slice[rank] = 1;
  }
  return terms;
}

class Ring : public ::testing::TestWithParam<int> {};

TEST_P(Ring, EverySliceIsSummedOnceFromEveryRank) {
  const int ranks = GetParam();
  Terms terms = own_values(ranks);
  const std::vector<int> whole(terms.size(), 1);
  const auto step_all = [&](bool adds, int step) {
    const Terms before = terms;
    for (int rank = 0; rank < ranks; ++rank) {
      const RingStep what =
          adds ? ring_reduce_step(rank, ranks, step) : ring_gather_step(rank, ranks, step);
      const auto slice = static_cast<size_t>(what.receive);
      const auto& left = before[static_cast<size_t>(left_of(rank, ranks))][slice];
      auto& mine = terms[static_cast<size_t>(rank)][slice];
      for (size_t i = 0; i < mine.size(); ++i) mine[i] = (adds ? mine[i] : 0) + left[i];
    }
  };
  for (int step = 0; step < ring_steps(ranks); ++step) step_all(true, step);
  for (int rank = 0; rank < ranks; ++rank) {
    EXPECT_EQ(terms[static_cast<size_t>(rank)][static_cast<size_t>(right_of(rank, ranks))], whole);
  }
  for (int step = 0; step < ring_steps(ranks); ++step) step_all(false, step);
  for (const auto& slices : terms) {
    for (const auto& slice : slices) EXPECT_EQ(slice, whole);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Ring, ::testing::Range(1, kMaxRanks + 1));

}  // namespace
}  // namespace lockstep::comm::schedule_test
