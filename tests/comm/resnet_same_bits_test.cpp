// ResNet-20: the bits of the trained weights do not depend on ranks or threads.
#include <cstring>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "comm/shared/thread_ranks.h"
#include "core/digest.h"
#include "nn/cifar_resnet.h"
#include "tests/support/documented_batch.h"
#include "tests/support/random_tensor.h"
#include "tests/support/training.h"

namespace lockstep::comm::resnet_same_bits_test {
namespace {

constexpr int64_t kImages = 8;  // per optimizer step, with one image per shard
constexpr int64_t kSteps = 2;

struct Run {
  int ranks = 1;
  int64_t groups = 1;
  int threads = 1;
};

Shards shards_of(const Run& run, Communicator& ranks) {
  const int64_t local = kImages / run.ranks;
  Shards shards = Shards::cut(local, local, 1);
  shards.total = kImages;
  shards.groups = run.groups;
  shards.first = ranks.rank() * local;
  shards.step_images = kImages;
  if (run.groups < run.ranks) shards.peers = &ranks;
  return shards;
}

// Returns a digest per rank of its parameters and momentum; rank 0's includes the running
// statistics.
std::vector<uint64_t> train(const Run& run) {
  std::vector<uint64_t> digests(static_cast<size_t>(run.ranks));
  const Tensor images = testing::random_tensor({kImages, 3, 12, 12}, 7, -1, 1);
  const Tensor labels = testing::documented_labels(kImages);
  spawn_ranks(run.ranks, [&](Communicator& ranks) {
    Mt19937 rng(42);
    nn::CifarResNet model(nn::Init{rng}, 20);
    Stream stream(Device::kCpu, run.threads);
    testing::TrainingStep training(
        stream, ranks, model, {.lr = 0.1F, .momentum = 0.9F, .weight_decay = 1e-4F});
    const Shards shards = shards_of(run, ranks);
    const Tensor mine = images.slice(shards.first, shards.local());
    const Tensor names = labels.slice(shards.first, shards.local());
    for (int64_t step = 0; step < kSteps; ++step) training.run(mine, names, shards);
    Digest digest;
    for (const nn::StateEntry& entry : model.state()) {
      if (!entry.is_parameter && ranks.rank() != 0) continue;
      digest.update(std::span(entry.tensor.bytes(), entry.tensor.nbytes()));
    }
    for (const nn::StateEntry& entry : training.optimizer().state()) {
      digest.update(std::span(entry.tensor.bytes(), entry.tensor.nbytes()));
    }
    digests[static_cast<size_t>(ranks.rank())] = digest.value();
  });
  return digests;
}

class ResNetSameBits : public ::testing::TestWithParam<int64_t> {};

TEST_P(ResNetSameBits, OnOneTwoAndFourRanks) {
  const int64_t groups = GetParam();
  const uint64_t one = train({.groups = groups}).front();
  EXPECT_EQ(train({.groups = groups, .threads = 3}).front(), one) << "3 threads";
  for (const int ranks : {2, 4}) {
    const std::vector<uint64_t> many = train({.ranks = ranks, .groups = groups, .threads = 2});
    EXPECT_EQ(many[0], one) << ranks << " ranks";
    for (const uint64_t rank : std::span(many).subspan(1)) EXPECT_EQ(rank, many[1]);
  }
}
INSTANTIATE_TEST_SUITE_P(Groups, ResNetSameBits, ::testing::Values(1, 4), [](const auto& run) {
  return fmt::format("G{}", run.param);
});

TEST(ResNetSameBitsMutant, OtherGroupsChangeBits) {
  EXPECT_NE(train({.groups = 1}).front(), train({.groups = 4}).front());
}

}  // namespace
}  // namespace lockstep::comm::resnet_same_bits_test
