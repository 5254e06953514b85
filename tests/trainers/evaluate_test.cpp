// Evaluation counts every image once, or is given up by all ranks together.
#include "trainers/loop/evaluate.h"

#include <gtest/gtest.h>

#include "comm/single.h"
#include "comm/thread_communicator.h"
#include "data/synthetic.h"
#include "nn/convnet.h"

namespace lockstep::trainers::evaluate_test {
namespace {

std::shared_ptr<const data::Dataset> forty_images() {
  return std::make_shared<data::Synthetic>(
      data::Synthetic::Options{.images = 40, .shape = {1, 28, 28}});
}

std::optional<Evaluation> evaluation_on(Communicator& ranks,
                                        std::function<bool()> stop,
                                        bool loss_div_batch = false) {
  Mt19937 rng(1);
  nn::ConvNet model(nn::Init{rng});
  Stream stream;
  EvaluationTask task{.model = model, .dataset = forty_images(), .normalization = {}};
  task.chunk_images = 10;
  task.stop = std::move(stop);
  task.loss_div_batch = loss_div_batch;
  return evaluate(task, stream, ranks);
}

TEST(Evaluate, CountsEachImageOnceOnAnyNumberOfRanks) {
  comm::SingleCommunicator single;
  const std::optional<Evaluation> alone = evaluation_on(single, {});
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->total, 40);
  comm::spawn_ranks(3, [&](Communicator& ranks) {
    const std::optional<Evaluation> together = evaluation_on(ranks, {});
    ASSERT_TRUE(together);
    EXPECT_EQ(together->total, 40);
    EXPECT_EQ(together->correct1, alone->correct1);
    EXPECT_EQ(together->loss, alone->loss);
  });
}

// Four batches of ten images.
TEST(Evaluate, DividesABatchsLossByItsImagesWhereAsked) {
  comm::SingleCommunicator single;
  const double loss = evaluation_on(single, {})->loss;
  EXPECT_NEAR(evaluation_on(single, {}, true)->loss, loss / 10, 1e-12 * loss);
}

TEST(Evaluate, OneRankThatStopsEndsItForAll) {
  comm::spawn_ranks(2, [](Communicator& ranks) {
    int asked = 0;
    const auto stop = [&] { return ranks.rank() == 1 && ++asked == 2; };
    EXPECT_FALSE(evaluation_on(ranks, stop));
    EXPECT_EQ(asked, ranks.rank() == 1 ? 2 : 0);
  });
}

}  // namespace
}  // namespace lockstep::trainers::evaluate_test
