#include "bench/train/synthetic_training.h"

#include <mutex>
#include <vector>

#include <gtest/gtest.h>

#include "comm/shared/thread_ranks.h"
#include "trainers/config/run_request.h"

namespace lockstep::bench::synthetic_training_test {
namespace {

struct Outcome {
  std::vector<float> losses;
  int64_t images = 0;
  std::vector<RankSeconds> seconds;
};

// Three steps of the ConvNet on 16 images in 4 shards, over `ranks` ranks.
Outcome train(int ranks, int64_t bn_groups, int64_t input_steps = 0) {
  Outcome outcome;
  std::mutex mutex;
  comm::spawn_ranks(ranks, [&](Communicator& peers) {
    trainers::RunRequest request = run_request(read_synthetic_options({"-a", "convnet"}));
    request.batch = {.global = 16, .shards = 4, .bn_groups = bn_groups};
    const trainers::ResolvedRun run{.request = request,
                                    .batch = divide_batch(request.batch, request.device, ranks, 1)};
    const trainers::ModelOptions network{.arch = "convnet", .image = {1, 28, 28}};
    Mt19937 rng(7);
    const auto model = trainers::make_model(network, nn::Init{rng});
    Stream stream;
    SyntheticTraining training({run, network, peers, stream, *model, {}, nullptr, input_steps});
    for (int step = 0; step < 3; ++step) training.step();
    const WindowTotals totals = training.exchange_totals();
    const std::lock_guard lock(mutex);
    if (peers.rank() == 0) outcome = {totals.losses, totals.images, totals.ranks};
  });
  return outcome;
}

TEST(SyntheticTraining, LearnsItsBatch) {
  const Outcome outcome = train(1, 1);
  ASSERT_EQ(outcome.losses.size(), 3U);
  EXPECT_NEAR(outcome.losses[0], 2.3, 0.7);
  EXPECT_LT(outcome.losses[2], outcome.losses[0]);
  EXPECT_EQ(outcome.images, 3 * 16);
  EXPECT_GT(outcome.seconds[0].own, 0);
}

// So the batch is dealt to ranks as the trainers deal theirs, batch norm over ranks included.
TEST(SyntheticTraining, LossesDoNotDependOnTheNumberOfRanks) {
  for (const int64_t bn_groups : {1, 4}) {
    const Outcome alone = train(1, bn_groups);
    for (const int ranks : {2, 4}) {
      const Outcome shared = train(ranks, bn_groups);
      EXPECT_EQ(shared.losses, alone.losses) << ranks << " ranks, " << bn_groups << " groups";
      EXPECT_EQ(shared.images, 3 * 16);
      EXPECT_EQ(std::ssize(shared.seconds), ranks);
    }
  }
  EXPECT_NE(train(1, 1).losses, train(1, 4).losses);
}

// Other images in each step, and those too are dealt as the trainers deal theirs.
TEST(SyntheticTraining, TakesImagesFromTheLoaderWhereItIsAsked) {
  const Outcome alone = train(1, 1, 3);
  EXPECT_NE(alone.losses, train(1, 1).losses);
  EXPECT_EQ(alone.images, 3 * 16);
  EXPECT_GT(alone.seconds[0].own, 0);
  EXPECT_EQ(train(2, 1, 3).losses, alone.losses);
}

}  // namespace
}  // namespace lockstep::bench::synthetic_training_test
