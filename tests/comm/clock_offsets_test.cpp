#include "comm/clock_offsets.h"

#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "comm/gather.h"
#include "comm/single.h"
#include "tests/comm/rank_set.h"

namespace lockstep::testing::clock_offsets_test {
namespace {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;

nanoseconds true_time() {
  return std::chrono::steady_clock::now().time_since_epoch();
}

// A clock that was `ahead` of the true time at `set` and runs too fast by the fraction `rate`.
struct WrongClock {
  nanoseconds ahead{};
  double rate = 0;
  nanoseconds set = true_time();

  double ahead_at(nanoseconds truth) const {
    return static_cast<double>(ahead.count()) + rate * static_cast<double>((truth - set).count());
  }
  nanoseconds show(nanoseconds truth) const {
    return truth + nanoseconds(std::llround(ahead_at(truth)));
  }
  nanoseconds now() const { return show(true_time()); }
};

TEST(ClockOffsets, AreRightWithinTheErrorThatTheyState) {
  RankSet ranks(3);
  const std::vector<WrongClock> clocks = {{.ahead = 3h}, {.ahead = -5s}, {.ahead = 7ms}};
  std::vector<std::vector<comm::ClockOffset>> found(3);
  ranks.together([&](int rank) {
    const auto r = static_cast<size_t>(rank);
    found[r] = comm::measure_clock_offsets(ranks[rank], [&] { return clocks[r].now(); });
  });
  for (size_t rank = 0; rank < 3; ++rank) {
    const comm::ClockOffset& offset = found[1].at(rank);
    const auto truth = static_cast<double>((clocks[rank].ahead - clocks[0].ahead).count());
    EXPECT_LE(std::abs(offset.offset - truth), offset.error + 1) << rank;  // 1 for rounding
    EXPECT_EQ(offset.offset, found[2].at(rank).offset) << "ranks agree";
    EXPECT_LT(offset.error, 1e9);
  }
  EXPECT_EQ(found[0].at(0).error, 0);
}

TEST(ClockMap, FollowsAClockThatDrifts) {
  RankSet ranks(2);
  const std::vector<WrongClock> clocks = {{}, {.ahead = 40ms, .rate = 0.5}};
  std::vector<comm::ClockOffset> before;
  std::vector<comm::ClockOffset> after;
  nanoseconds middle{};
  const auto measure = [&](std::vector<comm::ClockOffset>& into) {
    ranks.together([&](int rank) {
      const WrongClock& clock = clocks[static_cast<size_t>(rank)];
      const auto offsets = comm::measure_clock_offsets(ranks[rank], [&] { return clock.now(); });
      if (rank == 0) into = offsets;
    });
  };
  const nanoseconds begin = clocks[1].now();
  measure(before);
  std::this_thread::sleep_for(20ms);
  middle = true_time();
  std::this_thread::sleep_for(20ms);
  measure(after);
  const comm::ClockMap map(before[1], after[1]);
  // The clock also drifts during a measurement, by half the time that it takes.
  const nanoseconds measuring = after[1].at - begin - 60ms;
  const double drifted = 0.5 * static_cast<double>(measuring.count());
  const double error = map.on_rank0(clocks[1].show(middle)) - static_cast<double>(middle.count());
  EXPECT_LE(std::abs(error), map.error() + std::max(1e6, drifted));
}

TEST(ClockOffsets, ALoneRankIsExact) {
  comm::SingleCommunicator alone;
  const auto offsets = comm::measure_clock_offsets(alone);
  ASSERT_EQ(offsets.size(), 1U);
  EXPECT_EQ(offsets[0].offset, 0);
  EXPECT_EQ(comm::ClockMap(offsets[0], offsets[0]).on_rank0(nanoseconds(5)), 5);
}

TEST(CollectTexts, GivesRank0TextsOfAnyLength) {
  RankSet ranks(3);
  const std::vector<std::string> texts = {"zero", "", std::string((size_t{5} << 19) + 3, 'x')};
  std::vector<std::vector<std::string>> got(3);
  ranks.together([&](int rank) {
    const auto r = static_cast<size_t>(rank);
    got[r] = comm::collect_texts(ranks[rank], texts[r]);
  });
  EXPECT_EQ(got[0], texts);
  EXPECT_TRUE(got[1].empty());
}

}  // namespace
}  // namespace lockstep::testing::clock_offsets_test
