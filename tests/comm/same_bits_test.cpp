// The promise: a run's bits do not depend on the number of ranks over which its shards are
// distributed.
#include <cstring>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "comm/shared/thread_ranks.h"
#include "core/digest.h"
#include "nn/convnet.h"
#include "tests/support/random_tensor.h"
#include "tests/support/training.h"

namespace lockstep::comm::same_bits_test {
namespace {

constexpr int64_t kImages = 48;  // per optimizer step
constexpr int64_t kSteps = 3;

struct Run {
  int ranks = 1;
  int64_t shards = 8;
  int64_t groups = 1;
  int64_t micro_steps = 1;
  int threads = 1;
  BucketCaps caps{};
  bool overlap = true;
  std::vector<int64_t> leaf_order = {0, 1, 2, 3, 4, 5, 6, 7};  // the group of images in each leaf

  // Shard k of micro-step a is leaf a * shards + k.
  int64_t images_per_leaf() const { return kImages / (shards * micro_steps); }
};

// The rows of `all` for this rank: the images of its shards, in leaf_order.
Tensor rows_of(const Tensor& all, const Shards& shards, const Run& run) {
  const int64_t count = run.images_per_leaf();
  Tensor mine = all.shape().rank() == 1 ? Tensor::empty({shards.images()}, all.dtype())
                                        : Tensor::empty({shards.images(), 1, 28, 28}, all.dtype());
  for (int64_t k = 0; k < shards.local(); ++k) {
    const int64_t leaf = shards.micro_step * run.shards + shards.first + k;
    const int64_t from = leaf < 8 ? run.leaf_order[static_cast<size_t>(leaf)] : leaf;
    const Tensor rows = all.slice(from * count, count);
    std::memcpy(mine.slice(k * count, count).bytes(), rows.bytes(), rows.nbytes());
  }
  return mine;
}

Shards shards_of(const Run& run, Communicator& ranks, int64_t micro_step) {
  const int64_t local = run.shards / run.ranks;
  Shards shards = Shards::cut(local * run.images_per_leaf(), local, 1);
  shards.total = run.shards;
  shards.groups = run.groups;
  shards.first = ranks.rank() * local;
  shards.step_images = kImages;
  shards.micro_step = micro_step;
  if (run.groups < run.ranks) shards.peers = &ranks;
  return shards;
}

struct Result {
  // Digests of each rank's parameters and momentum; rank 0's includes group 0's statistics.
  std::vector<uint64_t> digests;
  std::vector<int64_t> images;  // seen by each rank in a step
  std::vector<int64_t> moved;   // bytes moved by each rank
  int64_t bucket_bytes = 0;
};

// The only data that may cross between ranks: buckets, as in any all-reduce, and one vector per
// shard for each batch norm of ConvNet whose groups span ranks. No images and no activations are
// exchanged.
int64_t expected_bytes(const Run& run, int64_t bucket_bytes) {
  int64_t vectors = 0;
  for (const int64_t channels : {16, 32}) {
    vectors += 2 * channels + 1;  // forward: mean, M2, count
    vectors += 2 * channels;      // backward: two sums
  }
  const int64_t rows = run.groups < run.ranks ? run.shards / run.ranks : 0;
  const int64_t batch_norm = rows * vectors * int64_t{sizeof(float)} * (run.ranks - 1);
  return kSteps * (2 * bucket_bytes * (run.ranks - 1) / run.ranks + run.micro_steps * batch_norm);
}

Result train(const Run& run) {
  Result result;
  result.digests.resize(static_cast<size_t>(run.ranks));
  result.images.resize(static_cast<size_t>(run.ranks));
  result.moved.resize(static_cast<size_t>(run.ranks));
  const Tensor images = testing::random_tensor({kImages, 1, 28, 28}, 7, 0, 1);
  Tensor labels = Tensor::empty({kImages}, Dtype::kI32);
  for (int64_t i = 0; i < kImages; ++i) labels.data<int32_t>()[i] = static_cast<int32_t>(i % 10);

  spawn_ranks(run.ranks, [&](Communicator& ranks) {
    Mt19937 rng(42);
    nn::ConvNet model(nn::Init{rng});
    Stream stream(Device::kCpu, run.threads);
    testing::TrainingStep training(
        stream,
        ranks,
        model,
        {.lr = 0.1F, .momentum = 0.9F, .weight_decay = 1e-4F},
        {.caps = run.caps, .overlap = run.overlap, .micro_steps = run.micro_steps});
    std::vector<testing::MicroBatch> batches;
    const auto rank = static_cast<size_t>(ranks.rank());
    for (int64_t a = 0; a < run.micro_steps; ++a) {
      const Shards shards = shards_of(run, ranks, a);
      batches.push_back({rows_of(images, shards, run), rows_of(labels, shards, run), shards});
      result.images[rank] += shards.images();
    }
    for (int64_t step = 0; step < kSteps; ++step) training.run(batches);
    Digest digest;
    for (const nn::StateEntry& entry : model.state()) {
      if (!entry.is_parameter && ranks.rank() != 0) continue;
      digest.update(std::span(entry.tensor.bytes(), entry.tensor.nbytes()));
    }
    for (const nn::StateEntry& entry : training.optimizer().state()) {
      digest.update(std::span(entry.tensor.bytes(), entry.tensor.nbytes()));
    }
    result.digests[rank] = digest.value();
    result.moved[rank] = ranks.traffic().moved_bytes;
    if (rank != 0) return;
    for (const Bucket& bucket : training.reducer().buckets()) {
      result.bucket_bytes += static_cast<int64_t>(bucket.values.nbytes());
    }
  });
  return result;
}

struct Case {
  int64_t groups;
  int64_t micro_steps;
};

class SameBits : public ::testing::TestWithParam<Case> {};

TEST_P(SameBits, OnOneTwoFourAndEightRanks) {
  const auto& [groups, micro_steps] = GetParam();
  const Result one = train({.ranks = 1, .groups = groups, .micro_steps = micro_steps});
  for (const int ranks : {2, 4, 8}) {
    const same_bits_test::Run run = {.ranks = ranks, .groups = groups, .micro_steps = micro_steps};
    const Result many = train(run);
    EXPECT_EQ(many.digests[0], one.digests[0]) << ranks << " ranks";
    for (int r = 2; r < ranks; ++r) {
      EXPECT_EQ(many.digests[static_cast<size_t>(r)], many.digests[1]) << "rank " << r;
    }
    const auto each = static_cast<size_t>(ranks);
    EXPECT_EQ(many.images, std::vector<int64_t>(each, kImages / ranks));
    EXPECT_EQ(many.moved, std::vector<int64_t>(each, expected_bytes(run, many.bucket_bytes)));
  }
}
INSTANTIATE_TEST_SUITE_P(
    GroupsAndMicroSteps,
    SameBits,
    ::testing::Values(Case{1, 1}, Case{2, 1}, Case{8, 1}, Case{1, 3}, Case{8, 2}),
    [](const auto& run) { return fmt::format("G{}A{}", run.param.groups, run.param.micro_steps); });

// Tutorials claim this of DDP and gradient accumulation; here it holds to the bit.
TEST(SameBitsAcross, EightRanksAndEightMicroStepsOfOne) {
  const Result eight_ranks = train({.ranks = 8, .shards = 8, .groups = 8});
  const Result eight_steps = train({.ranks = 1, .shards = 1, .groups = 1, .micro_steps = 8});
  EXPECT_EQ(eight_steps.digests[0], eight_ranks.digests[0]);
}

TEST(SameBitsAcross, ThreadsOfARank) {
  EXPECT_EQ(train({.ranks = 2, .groups = 2, .threads = 1}).digests,
            train({.ranks = 2, .groups = 2, .threads = 3}).digests);
}

TEST(SameBitsAcross, BucketsAndOverlap) {
  const Result plain = train({.ranks = 2, .groups = 2});
  for (const BucketCaps& caps : {BucketCaps{1, 1}, BucketCaps{20000, 30000}}) {
    for (const bool overlap : {true, false}) {
      EXPECT_EQ(train({.ranks = 2, .groups = 2, .caps = caps, .overlap = overlap}).digests,
                plain.digests)
          << caps.bytes << (overlap ? " overlapped" : " in finish()");
    }
  }
}

// Mutants: the tests above would detect swapped leaves and changed group numbers.
TEST(SameBitsMutant, SwappedLeavesChangeBits) {
  EXPECT_NE(train({.leaf_order = {0, 2, 1, 3, 4, 5, 6, 7}}).digests, train({}).digests);
}

TEST(SameBitsMutant, SwappedMicroStepsChangeBits) {
  EXPECT_NE(train({.shards = 1, .micro_steps = 8, .leaf_order = {0, 2, 1, 3, 4, 5, 6, 7}}).digests,
            train({.shards = 1, .micro_steps = 8}).digests);
}

TEST(SameBitsMutant, OtherGroupsChangeBits) {
  EXPECT_NE(train({.groups = 2}).digests, train({.groups = 8}).digests);
}

}  // namespace
}  // namespace lockstep::comm::same_bits_test
