#include "core/shards.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "core/error.h"

namespace lockstep::shards_test {
namespace {

using Offsets = std::vector<int64_t>;

TEST(Shards, SingleIsOneOfEverything) {
  const Shards shards = Shards::single(7);
  EXPECT_EQ(shards.local(), 1);
  EXPECT_EQ(shards.images(), 7);
  EXPECT_EQ(shards.count(0), 7);
  EXPECT_EQ(shards.step_images, 7);
  EXPECT_EQ(shards.local_groups(), 1);
}

TEST(Shards, CutFollowsTheFormula) {
  EXPECT_EQ(Shards::cut(10, 4, 1).offsets, (Offsets{0, 2, 5, 7, 10}));
  EXPECT_EQ(Shards::cut(10, 4, 2).offsets, (Offsets{0, 2, 5, 7, 10}));
  EXPECT_EQ(Shards::cut(6, 4, 2).offsets, (Offsets{0, 1, 3, 4, 6}));
  EXPECT_EQ(Shards::cut(3, 8, 1).offsets, (Offsets{0, 0, 0, 1, 1, 1, 2, 2, 3}));
  EXPECT_EQ(Shards::cut(0, 2, 1).offsets, (Offsets{0, 0, 0}));
}

TEST(Shards, CutCoversEvenlyAndKeepsGroupsApart) {
  for (int64_t groups = 1; groups <= 4; ++groups) {
    for (int64_t per_group = 1; per_group <= 5; ++per_group) {
      for (int64_t group_images = 0; group_images <= 17; ++group_images) {
        const Shards shards = Shards::cut(groups * group_images, groups * per_group, groups);
        ASSERT_EQ(shards.local(), groups * per_group);
        ASSERT_EQ(shards.total, groups * per_group);
        ASSERT_EQ(shards.images(), groups * group_images);
        ASSERT_EQ(shards.step_images, groups * group_images);
        for (int64_t k = 0; k < shards.local(); ++k) {
          ASSERT_GE(shards.count(k), group_images / per_group);
          ASSERT_LE(shards.count(k), (group_images + per_group - 1) / per_group);
          if (k % per_group == 0) {
            ASSERT_EQ(shards.begin(k), shards.group(k) * group_images);
          }
        }
      }
    }
  }
}

TEST(Shards, CutRefusesWhatDoesNotDivide) {
  EXPECT_THROW((void)Shards::cut(7, 2, 2), InternalError);
  EXPECT_THROW((void)Shards::cut(6, 3, 2), InternalError);
  EXPECT_THROW((void)Shards::cut(6, 1, 2), InternalError);
  EXPECT_THROW((void)Shards::cut(6, 2, 0), InternalError);
}

// `local` shards from `first` on, of `total` in `groups`.
Shards part(int64_t first, int64_t local, int64_t total, int64_t groups) {
  Shards shards;
  shards.offsets.assign(static_cast<size_t>(local + 1), 0);
  shards.first = first;
  shards.total = total;
  shards.groups = groups;
  return shards;
}

TEST(Shards, NumbersThatDoNotFitTogetherAreRefused) {
  EXPECT_NO_THROW(Shards::single(0).check());
  EXPECT_NO_THROW(Shards::cut(12, 4, 2).check());
  EXPECT_NO_THROW((Shards{.offsets = {0}, .total = 2, .first = 2}).check());
  EXPECT_THROW((Shards{.groups = 3}).check(), UsageError);
  EXPECT_THROW((Shards{.groups = 0}).check(), UsageError);
  EXPECT_THROW((Shards{.offsets = {0, 1, 2}}).check(), UsageError);
  EXPECT_THROW((Shards{.offsets = {0, 5, 2}, .total = 2}).check(), UsageError);
  EXPECT_THROW((Shards{.offsets = {1, 2}}).check(), UsageError);
  EXPECT_THROW((Shards{.offsets = {}}).check(), UsageError);
}

TEST(Shards, GroupsAreCountedOverAllRanks) {
  const Shards shards = part(3, 5, 12, 4);  // groups of 3; shards 3..7
  EXPECT_EQ(shards.per_group(), 3);
  EXPECT_EQ(shards.group(0), 1);
  EXPECT_EQ(shards.group(4), 2);
  EXPECT_EQ(shards.first_group(), 1);
  EXPECT_EQ(shards.local_groups(), 2);
}

TEST(Shards, ARankWithoutShardsHasNoGroups) {
  EXPECT_EQ(part(3, 0, 12, 4).local_groups(), 0);
}

TEST(Shards, GroupsSpanRanksWhereARankBeginsInsideOne) {
  EXPECT_FALSE(any_group_spans_ranks(8, 1, 1));
  EXPECT_FALSE(any_group_spans_ranks(8, 8, 8));
  EXPECT_FALSE(any_group_spans_ranks(8, 4, 2));
  EXPECT_FALSE(any_group_spans_ranks(8, 8, 3));  // uneven ranks, but no group is cut
  EXPECT_TRUE(any_group_spans_ranks(8, 1, 2));
  EXPECT_TRUE(any_group_spans_ranks(8, 4, 3));   // ranks own 2, 3 and 3 shards
  EXPECT_TRUE(any_group_spans_ranks(12, 3, 2));  // the group in the middle
  EXPECT_TRUE(any_group_spans_ranks(3, 1, 3));
}

}  // namespace
}  // namespace lockstep::shards_test
