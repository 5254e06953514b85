#include "data/batch_plan.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "core/error.h"

namespace lockstep::data::batch_plan_test {
namespace {

using Images = std::vector<int64_t>;

// Shard by shard over all ranks, the images of one micro-step.
std::vector<Images> shard_images(BatchPlan plan, int64_t ranks, int64_t step, int64_t micro) {
  std::vector<Images> all;
  plan.ranks = ranks;
  for (plan.rank = 0; plan.rank < ranks; ++plan.rank) {
    const MicroBatch batch = EpochPlan(plan, 0).micro_batch(step, micro);
    EXPECT_EQ(batch.shards.first, static_cast<int64_t>(all.size()));
    EXPECT_EQ(batch.shards.images(), static_cast<int64_t>(batch.images.size()));
    for (int64_t k = 0; k < batch.shards.local(); ++k) {
      const auto begin = batch.images.begin() + batch.shards.begin(k);
      all.emplace_back(begin, begin + batch.shards.count(k));
    }
  }
  return all;
}

TEST(BatchPlan, ShardsDoNotDependOnTheRanks) {
  for (const int64_t micro_steps : {1, 3}) {
    for (const int64_t groups : {1, 2, 8}) {
      const BatchPlan plan{.dataset_size = 203,
                           .global_batch = 48,
                           .micro_steps = micro_steps,
                           .shards = 8,
                           .groups = groups,
                           .seed = 5};
      for (int64_t step = 0; step < steps_per_epoch(plan); ++step) {
        for (int64_t micro = 0; micro < micro_steps; ++micro) {
          const std::vector<Images> alone = shard_images(plan, 1, step, micro);
          ASSERT_EQ(alone.size(), 8U);
          for (const int64_t ranks : {2, 3, 7, 8}) {
            EXPECT_EQ(shard_images(plan, ranks, step, micro), alone)
                << ranks << " ranks, step " << step << ", micro-step " << micro;
          }
        }
      }
    }
  }
}

TEST(BatchPlan, RepeatedImagesDoNotDependOnTheRanks) {
  const BatchPlan plan{
      .dataset_size = 600, .global_batch = 48, .shards = 8, .groups = 2, .seed = 5, .repeats = 3};
  EXPECT_EQ(steps_per_epoch(plan), 11);  // 512 images
  for (int64_t step = 0; step < steps_per_epoch(plan); ++step) {
    const std::vector<Images> alone = shard_images(plan, 1, step, 0);
    for (const int64_t ranks : {2, 4, 8}) EXPECT_EQ(shard_images(plan, ranks, step, 0), alone);
  }
  // The two groups take turns at the views of an image.
  const MicroBatch batch = EpochPlan(plan, 0).micro_batch(0, 0);
  EXPECT_EQ(batch.images[24] - batch.images[0], 600);
  EXPECT_EQ(batch.images[1] - batch.images[0], 1200);
}

TEST(BatchPlan, RanksOwnConsecutiveShards) {
  BatchPlan plan{.dataset_size = 100, .global_batch = 16, .shards = 8, .ranks = 3};
  const std::vector<std::pair<int64_t, int64_t>> want = {{0, 2}, {2, 3}, {5, 3}};
  for (plan.rank = 0; plan.rank < 3; ++plan.rank) {
    const Shards shards = EpochPlan(plan, 0).micro_batch(0, 0).shards;
    EXPECT_EQ(std::pair(shards.first, shards.local()), want[static_cast<size_t>(plan.rank)]);
    EXPECT_EQ(shards.total, 8);
    EXPECT_EQ(shards.groups, 1);
    EXPECT_EQ(shards.step_images, 16);
    EXPECT_EQ(shards.peers, nullptr);
  }
}

TEST(BatchPlan, ASmallDataSetMakesOneShortStep) {
  const BatchPlan plan{.dataset_size = 5, .global_batch = 64, .shards = 8, .groups = 2, .seed = 3};
  EXPECT_EQ(steps_per_epoch(plan), 1);
  const std::vector<Images> shards = shard_images(plan, 1, 0, 0);
  Images all;
  for (const Images& shard : shards) all.insert(all.end(), shard.begin(), shard.end());
  EXPECT_EQ(all.size(), 6U);  // two replicas of three: one image is there twice
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  EXPECT_EQ(all, (Images{0, 1, 2, 3, 4}));
  EXPECT_EQ(shard_images(plan, 8, 0, 0), shards);
  EXPECT_EQ(training_sequence(plan, 0, 1).max_images, 8);  // of 8 shards, one at most each
}

// len(DataLoader(range(n), batch_size, sampler=DistributedSampler(...), drop_last=True))
TEST(BatchPlan, DropLastLeavesOutTheShortStep) {
  BatchPlan plan{.dataset_size = 203, .global_batch = 48, .shards = 4, .groups = 4, .seed = 5};
  EXPECT_EQ(steps_per_epoch(plan), 5);
  const std::vector<Images> first = shard_images(plan, 1, 3, 0);
  plan.drop_last = true;
  EXPECT_EQ(steps_per_epoch(plan), 4);
  EXPECT_EQ(shard_images(plan, 1, 3, 0), first);  // the others are as they were
  const BatchSequence sequence = training_sequence(plan, 0, 8);
  BatchSequence at = sequence;
  for (int64_t number = 0; number < 8; ++number) {
    const MicroBatch batch = at.at(number);
    EXPECT_EQ(batch.epoch, number / 4);
    EXPECT_EQ(batch.shards.step_images, 48);
  }
  plan.dataset_size = 192;
  EXPECT_EQ(steps_per_epoch(plan), 4);
  plan.dataset_size = 44;  // eleven a replica, and a step wants twelve
  EXPECT_EQ(steps_per_epoch(plan), 0);
  EXPECT_THROW(training_sequence(plan, 0, 1), InternalError);
}

// DataLoader(batch_size, sampler=DistributedSampler(num_replicas=ranks, rank)), batch by batch.
TEST(BatchPlan, IsPyTorchsWhenEveryRankIsAGroup) {
  constexpr int64_t kRanks = 4;
  constexpr int64_t kBatch = 6;
  BatchPlan plan{.dataset_size = 203,
                 .global_batch = kRanks * kBatch,
                 .shards = 8,
                 .groups = kRanks,
                 .ranks = kRanks,
                 .seed = 42};
  for (const int64_t epoch : {0, 3}) {
    for (plan.rank = 0; plan.rank < kRanks; ++plan.rank) {
      const Images dealt = distributed_sampler(
          {.size = 203, .replicas = kRanks, .seed = 42, .epoch = epoch}, plan.rank);
      const EpochPlan epoch_plan(plan, epoch);
      auto at = dealt.begin();
      for (int64_t step = 0; step < steps_per_epoch(plan); ++step) {
        const int64_t count = std::min<int64_t>(kBatch, dealt.end() - at);
        const MicroBatch batch = epoch_plan.micro_batch(step, 0);
        EXPECT_EQ(batch.images, Images(at, at + count))
            << "rank " << plan.rank << ", step " << step;
        EXPECT_EQ(batch.shards.step_images, kRanks * count);
        at += count;
      }
      EXPECT_EQ(at, dealt.end());
    }
  }
}

// Tutorial 004's claim begins here: 8 ranks see what 1 rank sees in 8 micro-steps.
TEST(BatchPlan, MicroStepsAreDealtLikeRanks) {
  const BatchPlan ranks{.dataset_size = 100, .global_batch = 32, .shards = 8, .groups = 8};
  const BatchPlan micro_steps{.dataset_size = 100, .global_batch = 32, .micro_steps = 8};
  ASSERT_EQ(steps_per_epoch(ranks), 4);
  ASSERT_EQ(steps_per_epoch(micro_steps), 4);
  for (int64_t step = 0; step < 4; ++step) {
    const std::vector<Images> shards = shard_images(ranks, 1, step, 0);
    for (int64_t micro = 0; micro < 8; ++micro) {
      const MicroBatch batch = EpochPlan(micro_steps, 0).micro_batch(step, micro);
      EXPECT_EQ(batch.images, shards[static_cast<size_t>(micro)]);
      EXPECT_EQ(batch.shards.step_images, step < 3 ? 32 : 8);
      EXPECT_EQ(batch.shards.micro_step, micro);
    }
  }
}

TEST(BatchPlan, GroupsAreInterleavedReplicas) {
  const BatchPlan plan{.dataset_size = 12,
                       .global_batch = 8,
                       .micro_steps = 2,
                       .shards = 2,
                       .groups = 2,
                       .shuffle = false};
  const EpochPlan epoch(plan, 0);
  EXPECT_EQ(epoch.micro_batch(0, 0).images, (Images{0, 4, 2, 6}));  // replicas 0 and 2 of 4
  EXPECT_EQ(epoch.micro_batch(0, 1).images, (Images{1, 5, 3, 7}));
  EXPECT_EQ(epoch.micro_batch(1, 0).images, (Images{8, 10}));
  EXPECT_EQ(epoch.micro_batch(1, 0).shards.offsets, (Images{0, 1, 2}));
  EXPECT_EQ(epoch.micro_batch(1, 1).shards.step_images, 4);
}

TEST(BatchPlan, CutsLikeCoreShards) {
  const BatchPlan plan{.dataset_size = 1000, .global_batch = 46, .shards = 8, .groups = 2};
  EXPECT_EQ(EpochPlan(plan, 0).micro_batch(0, 0).shards.offsets, Shards::cut(46, 8, 2).offsets);
}

TEST(BatchPlan, LeavesShardsEmptyWhenImagesAreFew) {
  const BatchPlan plan{.dataset_size = 11, .global_batch = 8, .shards = 8, .shuffle = false};
  ASSERT_EQ(steps_per_epoch(plan), 2);
  const MicroBatch last = EpochPlan(plan, 0).micro_batch(1, 0);
  EXPECT_EQ(last.images, (Images{8, 9, 10}));
  EXPECT_EQ(last.shards.offsets, (Images{0, 0, 0, 1, 1, 1, 2, 2, 3}));
  EXPECT_EQ(last.shards.step_images, 3);
}

TEST(BatchPlan, PadsWhenReplicasComeShort) {
  const BatchPlan plan{
      .dataset_size = 3, .global_batch = 8, .shards = 4, .groups = 4, .shuffle = false};
  ASSERT_EQ(steps_per_epoch(plan), 1);
  EXPECT_EQ(EpochPlan(plan, 0).micro_batch(0, 0).images, (Images{0, 1, 2, 0}));
}

TEST(BatchPlan, RefusesWhatDoesNotDivide) {
  const BatchPlan good{.dataset_size = 10, .global_batch = 8, .shards = 4, .groups = 2};
  EXPECT_NO_THROW(EpochPlan(good, 0));
  const auto refuses = [&](auto change) {
    BatchPlan plan = good;
    change(plan);
    EXPECT_THROW(EpochPlan(plan, 0), InternalError);
    EXPECT_THROW(steps_per_epoch(plan), InternalError);
  };
  refuses([](BatchPlan& plan) { plan.dataset_size = 0; });
  refuses([](BatchPlan& plan) { plan.global_batch = 7; });
  refuses([](BatchPlan& plan) { plan.groups = 3; });
  refuses([](BatchPlan& plan) { plan.shards = 3; });
  refuses([](BatchPlan& plan) { plan.ranks = 5; });
  refuses([](BatchPlan& plan) { plan.rank = 1; });
  EXPECT_THROW(EpochPlan(good, 0).micro_batch(2, 0), InternalError);
  EXPECT_THROW(EpochPlan(good, 0).micro_batch(0, 1), InternalError);
}

TEST(TrainingSequence, RunsThroughEpochsFromAnyStep) {
  const BatchPlan plan{
      .dataset_size = 20, .global_batch = 8, .micro_steps = 2, .shards = 2, .groups = 1, .seed = 9};
  ASSERT_EQ(steps_per_epoch(plan), 3);
  BatchSequence sequence = training_sequence(plan, 2, 7);
  ASSERT_EQ(sequence.count, 10);
  for (int64_t number = 0; number < sequence.count; ++number) {
    const int64_t step = 2 + number / 2;
    const MicroBatch want = EpochPlan(plan, step / 3).micro_batch(step % 3, number % 2);
    const MicroBatch got = sequence.at(number);
    EXPECT_EQ(got.images, want.images) << "batch " << number;
    EXPECT_EQ(got.shards.offsets, want.shards.offsets);
    EXPECT_LE(static_cast<int64_t>(got.images.size()), sequence.max_images);
  }
}

TEST(Evaluation, SeesEveryImageOnceOnAnyRanks) {
  for (const int64_t ranks : {1, 2, 3, 8}) {
    for (const int64_t at_once : {1, 2, 5}) {
      std::vector<Images> chunks(5);
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const EvaluationPlan plan{.dataset_size = 23,
                                  .chunk_images = 5,
                                  .chunks_at_once = at_once,
                                  .rank = rank,
                                  .ranks = ranks};
        ASSERT_EQ(chunk_count(plan), 5);
        BatchSequence sequence = evaluation_sequence(plan);
        for (int64_t b = 0; b < sequence.count; ++b) {
          const MicroBatch batch = sequence.at(b);
          EXPECT_LE(batch.shards.images(), sequence.max_images);
          EXPECT_EQ(batch.shards.total, batch.shards.local());
          EXPECT_EQ(batch.shards.step_images, batch.shards.images());
          ASSERT_GT(batch.shards.local(), 0);
          for (int64_t k = 0; k < batch.shards.local(); ++k) {
            const int64_t chunk = chunk_of(plan, b, k);
            EXPECT_EQ(chunk % ranks, rank);
            const auto begin = batch.images.begin() + batch.shards.begin(k);
            Images& seen = chunks.at(static_cast<size_t>(chunk));
            EXPECT_TRUE(seen.empty()) << "chunk " << chunk << " comes twice";
            seen.assign(begin, begin + batch.shards.count(k));
          }
        }
      }
      EXPECT_EQ(chunks,
                (std::vector<Images>{{0, 1, 2, 3, 4},
                                     {5, 6, 7, 8, 9},
                                     {10, 11, 12, 13, 14},
                                     {15, 16, 17, 18, 19},
                                     {20, 21, 22}}))
          << ranks << " ranks, " << at_once << " at once";
    }
  }
}

}  // namespace
}  // namespace lockstep::data::batch_plan_test
