#include "core/philox.h"

#include <array>
#include <set>

#include <gtest/gtest.h>

namespace lockstep::philox_test {
namespace {

using Block = PhiloxBlock;
constexpr uint32_t kOnes = 0xffffffffU;

// Random123's kat_vectors, philox4x32 with 10 rounds.
static_assert(philox4x32({{0, 0, 0, 0}}, 0) ==
              Block{{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
static_assert(philox4x32({{kOnes, kOnes, kOnes, kOnes}}, 0xffffffffffffffffU) ==
              Block{{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
static_assert(philox4x32({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0x299f31d0a4093822) ==
              Block{{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});

TEST(PhiloxStream, WalksThroughBlocksOfItsCounter) {
  PhiloxStream stream(0x0000000200000001, RandomPurpose::kDigits, 7, 0x0000000400000003);
  for (uint32_t block = 0; block < 3; ++block) {
    const Block want = philox4x32({{3, 4, 7, (1U << 24) + block}}, 0x0000000200000001);
    EXPECT_EQ(
        philox_block(0x0000000200000001, RandomPurpose::kDigits, 7, 0x0000000400000003, block),
        want);
    for (const uint32_t word : want.words) EXPECT_EQ(stream.next(), word);
  }
}

TEST(PhiloxStream, EveryCoordinateGivesOtherNumbers) {
  std::set<uint32_t> first;
  const auto add = [&](uint64_t seed, uint32_t epoch, uint64_t item) {
    first.insert(PhiloxStream(seed, RandomPurpose::kDigits, epoch, item).next());
  };
  add(1, 0, 0);
  add(1ULL << 32, 0, 0);
  add(0, 1, 0);
  add(0, 0, 1);
  add(0, 0, 1ULL << 32);
  EXPECT_EQ(first.size(), 5U);
}

TEST(PhiloxStream, BelowStaysBelowAndMeetsEveryValue) {
  PhiloxStream stream(1, RandomPurpose::kDigits, 0, 0);
  std::array<int, 7> seen{};
  for (int i = 0; i < 7000; ++i) ++seen.at(stream.below(7));
  for (const int count : seen) EXPECT_NEAR(count, 1000, 150);
  EXPECT_EQ(stream.below(1), 0U);
}

}  // namespace
}  // namespace lockstep::philox_test
