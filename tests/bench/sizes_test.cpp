#include <gtest/gtest.h>

#include "bench/allreduce/measure.h"

namespace lockstep::bench::sizes_test {
namespace {

using Sizes = std::vector<int64_t>;

TEST(ParseSize, PowersOf1024InEitherCase) {
  EXPECT_EQ(parse_size("0"), 0);
  EXPECT_EQ(parse_size("4096"), 4096);
  EXPECT_EQ(parse_size("4K"), 4096);
  EXPECT_EQ(parse_size("4k"), 4096);
  EXPECT_EQ(parse_size("25M"), 26214400);
  EXPECT_EQ(parse_size("1G"), 1073741824);
  EXPECT_EQ(parse_size("1.5g"), 1610612736);
  EXPECT_EQ(parse_size("0.5"), 0);
}

TEST(ParseSize, OtherTextIsNoSize) {
  for (const char* text : {"",
                           "K",
                           "4KB",
                           "4 K",
                           "-1",
                           "-1K",
                           "4X",
                           "1e3",
                           "nan",
                           "inf",
                           "9e18",
                           "9223372036854775808",
                           "10000000000G",
                           "0x10"}) {
    EXPECT_FALSE(parse_size(text)) << text;
  }
}

TEST(SizesOf, StepsOrFactors) {
  EXPECT_EQ(sizes_of({.min_bytes = 4, .max_bytes = 12, .step_bytes = 4}), (Sizes{4, 8, 12}));
  EXPECT_EQ(sizes_of({.min_bytes = 4, .max_bytes = 11, .step_bytes = 4}), (Sizes{4, 8}));
  EXPECT_EQ(sizes_of({.min_bytes = 4, .max_bytes = 64, .step_factor = 4}), (Sizes{4, 16, 64}));
  EXPECT_EQ(sizes_of({}), (Sizes{32 << 20}));
}

TEST(SizesOf, EndsWhereTheStepLeadsNowhere) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(sizes_of({.min_bytes = 0, .max_bytes = 64, .step_factor = 2}), (Sizes{0}));
  EXPECT_EQ(sizes_of({.min_bytes = 8, .max_bytes = 64, .step_bytes = 0}), (Sizes{8}));
  EXPECT_EQ(sizes_of({.min_bytes = kMax - 1, .max_bytes = kMax, .step_factor = 2}),
            (Sizes{kMax - 1}));
  EXPECT_EQ(sizes_of({.min_bytes = kMax - 1, .max_bytes = kMax}), (Sizes{kMax - 1}));
}

TEST(Bandwidth, BusFactorIsWhatARankMoves) {
  EXPECT_DOUBLE_EQ(bus_factor(1), 0);
  EXPECT_DOUBLE_EQ(bus_factor(2), 1);
  EXPECT_DOUBLE_EQ(bus_factor(4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(8), 1.75);
  EXPECT_DOUBLE_EQ(gigabytes_per_second(26214400, 0.001), 26.2144);
  EXPECT_DOUBLE_EQ(gigabytes_per_second(26214400, 0), 0);
}

}  // namespace
}  // namespace lockstep::bench::sizes_test
