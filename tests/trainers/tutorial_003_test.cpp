// Items of tutorials 003 (main.py) and 004. The number in a test's name is the number of the item.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/settings/exchange_config.h"
#include "tests/trainers/options_of.h"
#include "trainers/config/config_from_flags.h"
#include "trainers/config/run_request.h"
#include "trainers/report/tutorial_lines.h"

namespace lockstep::trainers::tutorial_003_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::refusal;
using ::testing::UnorderedElementsAre;
using testing::usage_error;

Options resnet(const std::string& line) {
  return testing::options_of(line, {}, Program::kTrainResnet);
}

ResolvedRun run_of(const Options& options, int64_t ranks) {
  ResolvedRun run{.request = make_run_request(options)};
  run.batch.ranks = ranks;
  const BatchRequest& batch = run.request.batch;
  run.batch.images = batch.global.value_or(batch.per_rank.value_or(batch.default_per_rank) * ranks);
  return run;
}

std::vector<std::string> notes(const std::string& line, int ranks, int local) {
  const Options options = resnet(line + " --device cpu");
  return main_py_notes(options, run_of(options, ranks), {.size = ranks, .local_size = local});
}

TEST(Tutorial, Item3_1ParallelDpIsThreadsOfOneProcess) {
  const auto config = [](const std::string& line) {
    return make_exchange_config(resnet(line + " --device cpu"));
  };
  EXPECT_EQ(config("").rank_threads, 0);
  EXPECT_EQ(config("--parallel dp --devices 4").rank_threads, 4);
  EXPECT_EQ(config("--transport threads --devices 3").rank_threads, 3);
  const auto refused = [&](const std::string& line) {
    const auto error = usage_error([&] { config(line); });
    return error ? error->what() : std::string("accepted");
  };
  EXPECT_EQ(refused("--parallel dp"), "--parallel dp needs --devices N");
  EXPECT_EQ(refused("--devices 2"), "--devices 2 needs --parallel dp");
  EXPECT_EQ(refused("--parallel dp --devices 2 --transport shm"),
            "--parallel dp and --transport shm contradict each other");
  EXPECT_EQ(refused("--parallel dp --devices 2 --algorithm mpi"),
            "--parallel dp has no --algorithm mpi");
}

TEST(Tutorial, Item3_2NetworksOfOtherSpellingsAreFound) {
  const auto advice = [](const std::string& line) {
    const auto error = usage_error([&] { resnet(line); });
    return error ? error->hint() : std::string("accepted");
  };
  EXPECT_EQ(advice("-a ghost_net"), "did you mean --arch ghostnet_100?");
  EXPECT_EQ(advice("-a GhostNet"), "did you mean --arch ghostnet_100?");
  EXPECT_EQ(advice("-a resnet-50"), "did you mean --arch resnet50?");
  EXPECT_EQ(advice("-a vgg16-bn"), "did you mean --arch vgg16_bn?");
  EXPECT_EQ(advice("-a convnet"), "train_convnet --arch convnet");
  EXPECT_EQ(advice("-a squeezenet"), "train_resnet --help");
}

TEST(Tutorial, Item3_7MainPysBatchIsANodes) {
  EXPECT_THAT(notes("--multiprocessing-distributed -b 256 -j 1", 2, 2),
              ElementsAre("note: 512 images per step (main.py: 256): its -b is a node's, ours a "
                          "rank's; --global-batch-size counts those of all ranks"));
  EXPECT_THAT(
      notes("--preset imagenet-main -b 256 -j 1", 3, 3),
      ElementsAre(HasSubstr("768 images per step (main.py: 255, since int(256 / 3) loses 1)")));
  EXPECT_THAT(notes("--preset imagenet-main -j 1", 8, 4),
              ElementsAre(HasSubstr("256 images per step (main.py: 512)")));
  EXPECT_THAT(notes("--preset imagenet-main -j 1", 4, 4), IsEmpty());
  EXPECT_THAT(notes("--preset imagenet-main -b 256 -j 1", 1, 1), IsEmpty());
  EXPECT_THAT(notes("--preset imagenet-main --global-batch-size 256 -j 1", 8, 4), IsEmpty());
  EXPECT_THAT(notes("-b 256", 2, 2), IsEmpty()) << "nobody spoke of main.py";
  EXPECT_THAT(notes("--preset apex-imagenet -b 208", 2, 2), IsEmpty()) << "there a rank's too";
}

TEST(Tutorial, Item3_8WorkersAreDealtToTheRanksOfANode) {
  EXPECT_EQ(main_py_shares(256, 4, 3).batch_per_rank, 85);
  const std::vector<int64_t> wanted = {4, 2, 2, 1, 1};
  for (int64_t ranks = 1; ranks <= 5; ++ranks) {
    EXPECT_EQ(main_py_shares(0, 4, ranks).workers_per_rank, wanted[static_cast<size_t>(ranks - 1)]);
  }
  EXPECT_THAT(notes("--preset imagenet-main", 3, 3),
              Contains("note: 12 loader threads on a host of 3 ranks (main.py: 6): its -j is a "
                       "node's, ours a rank's; -j 2 gives as many"));
}

TEST(Tutorial, Item3_9WarningsOfMainPy) {
  EXPECT_THAT(notes("--preset imagenet-main --gpu 0 --seed 3", 1, 1),
              UnorderedElementsAre(
                  HasSubstr("You have chosen a specific GPU. This will completely disable data "
                            "parallelism."),
                  HasSubstr("You have chosen to seed training. ")));
  EXPECT_THAT(notes("--gpu 0 -j 1", 2, 2), IsEmpty()) << "data parallelism is on";
  EXPECT_THAT(notes("--preset apex-imagenet --gpu 0 -b 32 -j 4", 2, 2), IsEmpty())
      << "another script's flag";
  EXPECT_THAT(notes("--seed 3", 1, 1), IsEmpty());
}

TEST(Tutorial, Item3_9LinesOfMainPy) {
  const auto lines = [](const std::string& line, Device device, std::vector<std::string> loaded) {
    const Options options = resnet(line);
    ResolvedRun run = run_of(options, 1);
    run.request.device = device;
    return main_py_lines(options, run, {.local_rank = 3, .local_size = 4}, loaded);
  };
  EXPECT_THAT(lines("--preset imagenet-main --device cpu", Device::kCpu, {}),
              ElementsAre("=> creating model 'resnet18'", "using CPU, this will be slow"));
  EXPECT_THAT(lines("--preset imagenet-main --device cpu", Device::kCuda, {}),
              ElementsAre("Use GPU: 3 for training", "=> creating model 'resnet18'"));
  const std::string pretrained = "=> using pre-trained model 'resnet18' (f)";
  EXPECT_THAT(lines("--preset imagenet-main --device cpu", Device::kCuda, {pretrained}),
              ElementsAre("Use GPU: 3 for training", pretrained));
  EXPECT_THAT(lines("-a resnet20 --device cpu", Device::kCpu, {}),
              ElementsAre("=> creating model 'resnet20'"));
}

TEST(Tutorial, Item4_10FlagsOfVoxcelebTrainerAreAnswered) {
  const Options options = resnet(
      "--port 8888 --distributed --syncBN --nDataLoaderThread 5 --find_unused_parameters False");
  EXPECT_THAT(options.notes,
              ElementsAre(HasSubstr("--port (voxceleb_trainer) changes nothing"),
                          HasSubstr("--distributed (voxceleb_trainer) changes nothing")));
  EXPECT_TRUE(options.boolean("sync-bn"));
  EXPECT_EQ(options.integer("workers"), 5);
  EXPECT_EQ(options.text("unused"), "error");
}

}  // namespace
}  // namespace lockstep::trainers::tutorial_003_test
