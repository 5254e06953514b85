// The promise: a run's bits do not depend on how many ranks its shards are spread over.
#include <cstring>
#include <numeric>

#include <gtest/gtest.h>

#include "comm/thread_communicator.h"
#include "core/digest.h"
#include "nn/convnet.h"
#include "tests/support/random_tensor.h"
#include "tests/support/training.h"

namespace lockstep::comm {
namespace {

constexpr int64_t kImages = 24;
constexpr int64_t kShards = 8;
constexpr int64_t kSteps = 3;

struct Run {
  int ranks = 1;
  int64_t groups = 1;
  int threads = 1;
  std::vector<int64_t> shard_order = {0, 1, 2, 3, 4, 5, 6, 7};  // whose images shard k holds
};

// Rows of `all` for this rank: its shards' images, in shard_order.
Tensor rows_of(const Tensor& all, const Shards& shards, const Run& run) {
  constexpr int64_t kPerShard = kImages / kShards;
  Tensor mine = all.shape().rank() == 1 ? Tensor::empty({shards.images()}, all.dtype())
                                        : Tensor::empty({shards.images(), 1, 28, 28}, all.dtype());
  for (int64_t k = 0; k < shards.local(); ++k) {
    const int64_t from = run.shard_order[static_cast<size_t>(shards.first + k)];
    const Tensor rows = all.slice(from * kPerShard, kPerShard);
    std::memcpy(mine.slice(k * kPerShard, kPerShard).bytes(), rows.bytes(), rows.nbytes());
  }
  return mine;
}

Shards shards_of(const Run& run, Communicator& ranks) {
  const int64_t local = kShards / run.ranks;
  Shards shards = Shards::cut(kImages / run.ranks, local, 1);
  shards.total = kShards;
  shards.groups = run.groups;
  shards.first = ranks.rank() * local;
  shards.step_images = kImages;
  if (run.groups < run.ranks) shards.peers = &ranks;
  return shards;
}

struct Result {
  std::vector<uint64_t> digests;  // of each rank's parameters and group 0's statistics on rank 0
  std::vector<int64_t> images;    // that each rank saw in a step
};

Result train(const Run& run) {
  Result result;
  result.digests.resize(static_cast<size_t>(run.ranks));
  result.images.resize(static_cast<size_t>(run.ranks));
  const Tensor images = testing::random_tensor({kImages, 1, 28, 28}, 7, 0, 1);
  Tensor labels = Tensor::empty({kImages}, Dtype::kI32);
  for (int64_t i = 0; i < kImages; ++i) labels.data<int32_t>()[i] = static_cast<int32_t>(i % 10);

  spawn_ranks(run.ranks, [&](Communicator& ranks) {
    Mt19937 rng(42);
    nn::ConvNet model(nn::Init{rng});
    Stream stream(Device::kCpu, run.threads);
    testing::TrainingStep training(
        stream, ranks, model, {.lr = 0.1F, .momentum = 0.9F, .weight_decay = 1e-4F});
    const Shards shards = shards_of(run, ranks);
    for (int64_t step = 0; step < kSteps; ++step) {
      training.run(rows_of(images, shards, run), rows_of(labels, shards, run), shards);
    }
    Digest digest;
    for (const nn::StateEntry& entry : model.state()) {
      if (!entry.is_parameter && ranks.rank() != 0) continue;
      digest.update(std::span(entry.tensor.bytes(), entry.tensor.nbytes()));
    }
    result.digests[static_cast<size_t>(ranks.rank())] = digest.value();
    result.images[static_cast<size_t>(ranks.rank())] = shards.images();
  });
  return result;
}

class SameBits : public ::testing::TestWithParam<int64_t> {};

TEST_P(SameBits, OnOneTwoFourAndEightRanks) {
  const Result one = train({.ranks = 1, .groups = GetParam()});
  for (const int ranks : {2, 4, 8}) {
    const Result many = train({.ranks = ranks, .groups = GetParam()});
    EXPECT_EQ(many.digests[0], one.digests[0]) << ranks << " ranks";
    for (int r = 2; r < ranks; ++r) {
      EXPECT_EQ(many.digests[static_cast<size_t>(r)], many.digests[1]) << "rank " << r;
    }
    EXPECT_EQ(many.images, std::vector<int64_t>(static_cast<size_t>(ranks), kImages / ranks));
  }
}
INSTANTIATE_TEST_SUITE_P(Groups, SameBits, ::testing::Values(1, 2, 8));

TEST(SameBitsAcross, ThreadsOfARank) {
  EXPECT_EQ(train({.ranks = 2, .groups = 2, .threads = 1}).digests,
            train({.ranks = 2, .groups = 2, .threads = 3}).digests);
}

// Mutants: the test above would see leaves that changed places, and group numbers that moved.
TEST(SameBitsMutant, SwappedLeavesChangeBits) {
  EXPECT_NE(train({.shard_order = {0, 2, 1, 3, 4, 5, 6, 7}}).digests, train({}).digests);
}

TEST(SameBitsMutant, OtherGroupsChangeBits) {
  EXPECT_NE(train({.groups = 2}).digests, train({.groups = 8}).digests);
}

}  // namespace
}  // namespace lockstep::comm
