// Ranks that would train different things: each hears which, before a step.
#include "engine/compare_trainings.h"

#include <gmock/gmock.h>

#include "tests/engine/trainings.h"

namespace lockstep::testing::compare_trainings_test {
namespace {

using ::testing::HasSubstr;

// Why two ranks' trainings are refused on both, where change(options) is rank 1's.
std::string why_refused(const std::function<void(TrainerOptions& options)>& change) {
  std::string why;
  spawn(2, [&](Communicator& peers) {
    TrainerOptions options = short_options();
    if (peers.rank() == 1) change(options);
    try {
      train_digits(peers, options, 1);
      ADD_FAILURE() << "no error on rank " << peers.rank();
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr("different arguments"));
      EXPECT_NE(error.hint(), "");
      if (peers.rank() == 0) why = error.why();
    }
  });
  return why;
}

TEST(CompareTrainings, NamesTheOptionThatDiffers) {
  EXPECT_EQ(why_refused([](TrainerOptions& options) { options.batch = 32; }),
            "rank 1 has batch=32, rank 0 has batch=16");
  EXPECT_EQ(why_refused([](TrainerOptions& options) { options.shards.reset(); }),
            "rank 1 has shards=default, rank 0 has shards=4");
  EXPECT_THAT(why_refused([](TrainerOptions& options) { options.optimizer.lr = 0.5; }),
              HasSubstr("lr 0.5"));
  EXPECT_THAT(why_refused([](TrainerOptions& options) { options.schedule.gamma = 0.5; }),
              HasSubstr("gamma 0.5"));
  EXPECT_EQ(why_refused([](TrainerOptions& options) { options.precision.level = 4; }),
            "rank 1 has precision.level=4, rank 0 has precision.level=0");
}

TEST(CompareTrainings, ThreadsWorkersAndWarningsAreARanksOwn) {
  TrainerOptions options = short_options();
  options.rank.threads = 2;
  const Trained expected = train_on(2, options, 2);
  spawn(2, [&](Communicator& peers) {
    TrainerOptions mine = options;
    if (peers.rank() == 1) {
      mine.rank.threads = 1;
      mine.rank.workers = 1;
      mine.warn = [](const std::string&) {};
    }
    EXPECT_EQ(train_digits(peers, mine, 2), expected);
  });
}

// Makes a trainer on each of two ranks. The error that both have.
std::string refused(const std::function<void(Communicator& peers)>& make_trainer) {
  std::string why;
  spawn(2, [&](Communicator& peers) {
    try {
      make_trainer(peers);
      ADD_FAILURE() << "no error on rank " << peers.rank();
    } catch (const UsageError& error) {
      if (peers.rank() == 1) why = error.why();
    }
  });
  return why;
}

TEST(CompareTrainings, RefusesOtherNetworks) {
  EXPECT_THAT(refused([](Communicator& peers) {
                Mt19937 rng(1);
                const nn::Init init{rng};
                nn::ConvNet convnet(init);
                nn::ToyNet toy(init);
                nn::Module& network = peers.rank() == 0 ? static_cast<nn::Module&>(convnet) : toy;
                const Trainer trainer(peers, network, data::open_digits(), short_options());
              }),
              ::testing::StartsWith("rank 1 has network="));
}

TEST(CompareTrainings, RefusesOtherFrozenParameters) {
  EXPECT_THAT(refused([](Communicator& peers) {
                Mt19937 rng(1);
                nn::ToyNet network(nn::Init{rng});
                if (peers.rank() == 1) network.parameters().front().set_requires_grad(false);
                const Trainer trainer(peers, network, data::open_digits(), short_options());
              }),
              ::testing::StartsWith("rank 1 has trained parameters="));
}

TEST(CompareTrainings, RefusesOtherImages) {
  EXPECT_THAT(refused([](Communicator& peers) {
                Mt19937 rng(1);
                nn::ConvNet network(nn::Init{rng});
                data::DatasetPair images = data::open_digits();
                if (peers.rank() == 1) std::swap(images.train, images.test);
                const Trainer trainer(peers, network, images, short_options());
              }),
              HasSubstr("rank 1 has training images="));
}

}  // namespace
}  // namespace lockstep::testing::compare_trainings_test
