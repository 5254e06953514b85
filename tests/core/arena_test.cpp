#include <cstdint>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "core/allocator.h"
#include "core/error.h"
#include "core/mt19937.h"

namespace lockstep::arena_test {
namespace {

constexpr size_t kPage = 4096;

class ArenaTest : public ::testing::Test {
 protected:
  std::byte* at(size_t page) { return begin_ + page * kPage; }

  // Never touched: the arena keeps its books elsewhere.
  std::byte* begin_ = reinterpret_cast<std::byte*>(uintptr_t{1} << 40);
  Arena arena_{begin_, 10 * kPage};
};

TEST_F(ArenaTest, FirstFitFromTheBegin) {
  EXPECT_EQ(arena_.allocate(2 * kPage), at(0));
  EXPECT_EQ(arena_.allocate(1), at(2));
  EXPECT_EQ(arena_.allocate(kPage + 1), at(3));
  EXPECT_EQ(arena_.touched_bytes(), 5 * kPage);
  arena_.free(at(0));
  EXPECT_EQ(arena_.allocate(3 * kPage), at(5));
  EXPECT_EQ(arena_.allocate(kPage), at(0));
  EXPECT_EQ(arena_.allocate(kPage), at(1));
  EXPECT_EQ(arena_.touched_bytes(), 8 * kPage);
}

TEST_F(ArenaTest, TheSmallestHoleThatIsLargeEnough) {
  for (const size_t pages : {4, 1, 2, 1, 2}) arena_.allocate(pages * kPage);
  for (const size_t begin : {0, 5, 8}) arena_.free(at(begin));
  EXPECT_EQ(arena_.allocate(2 * kPage), at(5));
  EXPECT_EQ(arena_.allocate(2 * kPage), at(8));
  EXPECT_EQ(arena_.allocate(2 * kPage), at(0));
}

// The last one fits neither of the holes beside the second.
TEST(ArenaRecord, SaysHowLargeAnArenaHoldsARecord) {
  ArenaRecord record(kPage);
  const size_t first = record.allocate(3 * kPage), second = record.allocate(3 * kPage - 1);
  const size_t third = record.allocate(3 * kPage);
  EXPECT_EQ(record.arena_bytes(), 9 * kPage);
  record.free(first);
  record.free(third);
  EXPECT_EQ(record.bytes_in_use(), 3 * kPage);
  const size_t last = record.allocate(5 * kPage);
  EXPECT_EQ(record.peak_bytes_in_use(), 9 * kPage);
  EXPECT_EQ(record.arena_bytes(), 11 * kPage);
  record.free(second);
  record.free(last);
  EXPECT_EQ(record.arena_bytes(), 11 * kPage);
  EXPECT_EQ(ArenaRecord(kPage).arena_bytes(), 0U);
}

TEST_F(ArenaTest, NeighborsBecomeOneInEveryOrder) {
  const std::vector<std::vector<size_t>> orders = {
      {0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const std::vector<size_t>& order : orders) {
    for (size_t i = 0; i < 3; ++i) ASSERT_EQ(arena_.allocate(3 * kPage), at(3 * i));
    EXPECT_EQ(arena_.allocate(2 * kPage), nullptr);
    for (const size_t i : order) arena_.free(at(3 * i));
    EXPECT_EQ(arena_.allocate(10 * kPage), at(0));
    arena_.free(at(0));
  }
}

TEST_F(ArenaTest, TooLargeAndUnknownPartsAreRefused) {
  EXPECT_EQ(arena_.allocate(10 * kPage + 1), nullptr);
  EXPECT_EQ(arena_.allocate(SIZE_MAX), nullptr);
  EXPECT_TRUE(arena_.holds(at(9)));
  EXPECT_FALSE(arena_.holds(at(10)));
  EXPECT_THROW(arena_.free(at(0)), InternalError);
  ASSERT_EQ(arena_.allocate(2 * kPage), at(0));
  EXPECT_THROW(arena_.free(at(1)), InternalError);
  arena_.free(at(0));
  EXPECT_THROW(arena_.free(at(0)), InternalError);
}

TEST(Arena, PartsNeverOverlap) {
  auto* const begin = reinterpret_cast<std::byte*>(uintptr_t{1} << 40);
  Arena arena(begin, 100 * kPage);
  Mt19937 random(1);
  std::map<std::byte*, size_t> parts;
  for (int i = 0; i < 5000; ++i) {
    if (random.next_u32() % 2 == 0) {
      const size_t bytes = random.next_u32() % (12 * kPage);
      auto* part = static_cast<std::byte*>(arena.allocate(bytes));
      if (part == nullptr) continue;
      const auto next = parts.lower_bound(part);
      ASSERT_TRUE(next == parts.end() || part + bytes <= next->first);
      if (next != parts.begin()) {
        const auto& [before, size] = *std::prev(next);
        ASSERT_LE(before + size, part);
      }
      ASSERT_LE(part + bytes, begin + 100 * kPage);
      parts[part] = bytes;
    } else if (!parts.empty()) {
      auto gone = parts.begin();
      std::advance(gone, random.next_u32() % parts.size());
      arena.free(gone->first);
      parts.erase(gone);
    }
  }
  for (const auto& [part, bytes] : parts) arena.free(part);
  EXPECT_EQ(arena.allocate(100 * kPage), begin);
}

}  // namespace
}  // namespace lockstep::arena_test
