// AlexNet and GhostNet with dropout: the bits of the trained weights do not depend on ranks or
// threads.
#include <gtest/gtest.h>

#include "comm/shared/thread_ranks.h"
#include "core/digest.h"
#include "tests/support/documented_batch.h"
#include "tests/support/photo_networks.h"
#include "tests/support/random_tensor.h"
#include "tests/support/training.h"

namespace lockstep::comm::photo_network_same_bits_test {
namespace {

constexpr int64_t kImages = 4;  // per optimizer step, with one image per shard
constexpr int64_t kSteps = 2;

struct Network {
  std::string name;
  int64_t pixels;
};

struct Run {
  int ranks = 1;
  int threads = 1;
  double dropout = 0.5;
};

Shards shards_of(Communicator& ranks) {
  const int64_t local = kImages / ranks.size();
  Shards shards = Shards::cut(local, local, 1);
  shards.total = kImages;
  shards.first = ranks.rank() * local;
  shards.step_images = kImages;
  if (ranks.size() > 1) shards.peers = &ranks;
  return shards;
}

// Returns a digest of rank 0's parameters and running statistics.
uint64_t train(const Network& network, const Run& run) {
  uint64_t value = 0;
  const Tensor images =
      testing::random_tensor({kImages, 3, network.pixels, network.pixels}, 7, -1, 1);
  const Tensor labels = testing::documented_labels(kImages);
  spawn_ranks(run.ranks, [&](Communicator& ranks) {
    Mt19937 rng(42);
    const auto model = testing::make_photo_network(
        network.name, nn::Init{rng}, {.classes = 5, .hidden = 16, .dropout = run.dropout});
    Stream stream(Device::kCpu, run.threads);
    testing::TrainingStep training(stream, ranks, *model, {.lr = 0.1F, .momentum = 0.9F});
    const Shards shards = shards_of(ranks);
    for (int64_t step = 0; step < kSteps; ++step) {
      Tensor numbers = Tensor::empty({shards.local()}, Dtype::kI64);
      for (int64_t n = 0; n < shards.local(); ++n) {
        numbers.data<int64_t>()[n] = step * kImages + shards.first + n;
      }
      const testing::MicroBatch batch{.images = images.slice(shards.first, shards.local()),
                                      .labels = labels.slice(shards.first, shards.local()),
                                      .shards = shards,
                                      .draws = {.seed = 5, .images = numbers}};
      training.run(std::span(&batch, 1));
    }
    if (ranks.rank() != 0) return;
    Digest digest;
    for (const nn::StateEntry& entry : model->state()) {
      digest.update(std::span(entry.tensor.bytes(), entry.tensor.nbytes()));
    }
    value = digest.value();
  });
  return value;
}

class PhotoNetworkSameBits : public ::testing::TestWithParam<Network> {};

TEST_P(PhotoNetworkSameBits, OnOneTwoAndFourRanks) {
  const uint64_t one = train(GetParam(), {});
  EXPECT_EQ(train(GetParam(), {.threads = 3}), one) << "3 threads";
  EXPECT_EQ(train(GetParam(), {.ranks = 2, .threads = 2}), one) << "2 ranks";
  EXPECT_EQ(train(GetParam(), {.ranks = 4}), one) << "4 ranks";
  EXPECT_NE(train(GetParam(), {.dropout = 0}), one) << "without dropout";
}
INSTANTIATE_TEST_SUITE_P(Networks,
                         PhotoNetworkSameBits,
                         ::testing::Values(Network{"alexnet", 63}, Network{"ghostnet_100", 32}),
                         [](const auto& run) { return run.param.name; });

}  // namespace
}  // namespace lockstep::comm::photo_network_same_bits_test
