#include "engine/settings/batch_division.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainers/options_of.h"
#include "trainers/config/config_from_flags.h"
#include "trainers/report/flag_advice.h"
#include "trainers/report/run_report.h"

namespace lockstep::trainers::batch_division_test {
namespace {

using ::testing::ElementsAre;
using testing::options_of;
using testing::usage_error;

BatchDivision divided(const std::string& line, int64_t ranks, int64_t threads) {
  const RunRequest request = make_run_request(options_of(line));
  return divide_batch(request.batch, request.device, ranks, threads);
}

void check_steps_of(const BatchDivision& batch, int64_t images) {
  check_steps({.names = kBatchFlags}, batch, images);
}

struct Case {
  std::string line;
  int64_t ranks;
  int64_t threads;
  int64_t batch;
  int64_t shards;
  int64_t groups;

  friend void PrintTo(const Case& run, std::ostream* out) {
    *out << run.line << " on " << run.ranks << "x" << run.threads;
  }
};

class DivideBatch : public ::testing::TestWithParam<Case> {};

TEST_P(DivideBatch, SettlesWhatWasLeftOpen) {
  const Case& want = GetParam();
  const BatchDivision batch = divided(want.line, want.ranks, want.threads);
  EXPECT_EQ(batch.images, want.batch) << want.line;
  EXPECT_EQ(batch.shards, want.shards) << want.line;
  EXPECT_EQ(batch.bn_groups, want.groups) << want.line;
  EXPECT_EQ(batch.ranks, want.ranks);
  EXPECT_EQ(batch.micro_steps, 1);
}
INSTANTIATE_TEST_SUITE_P(
    Runs,
    DivideBatch,
    ::testing::Values(Case{"", 1, 1, 64, 1, 1},
                      Case{"", 1, 2, 64, 2, 1},
                      Case{"", 2, 1, 128, 2, 2},
                      Case{"", 8, 1, 512, 8, 8},
                      Case{"", 2, 7, 128, 8, 2},
                      Case{"-b 3", 2, 8, 6, 4, 2},
                      Case{"-b 1", 8, 16, 8, 8, 8},
                      Case{"", 3, 1, 192, 3, 3},
                      Case{"--sync-bn", 4, 1, 256, 4, 1},
                      Case{"--global-batch-size 512 --shards 8 --bn-groups 8", 1, 2, 512, 8, 8},
                      Case{"--global-batch-size 512 --shards 8 --bn-groups 8", 2, 4, 512, 8, 8},
                      Case{"--global-batch-size 512 --shards 8 --bn-groups 8", 8, 1, 512, 8, 8},
                      Case{"-b 64 --global-batch-size 128", 2, 1, 128, 2, 2},
                      Case{"--global-batch-size 3 --sync-bn", 4, 2, 3, 4, 1},
                      Case{"--preset demo-baseline", 1, 2, 32, 2, 1},
                      Case{"--preset demo-baseline --global-batch-size 100", 2, 1, 100, 2, 2},
                      Case{"--shards 6 --bn-groups 3 --global-batch-size 99", 2, 1, 99, 6, 3}));

TEST(DivideBatchMicroSteps, AccumulationKeepsTheGlobalBatch) {
  RunRequest request = make_run_request(options_of("-b 8 --batches-per-allreduce 4"));
  const BatchDivision batch = divide_batch(request.batch, request.device, 2, 16);
  EXPECT_EQ(batch.images, 64);
  EXPECT_EQ(batch.shards, 16);
  request.batch.global = 60;
  request.batch.per_rank.reset();
  const auto error = usage_error([&] { divide_batch(request.batch, request.device, 2, 1); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->why(), "they are dealt evenly to 2 BN groups in each of 4 micro-steps");
  EXPECT_EQ(error->hint(),
            "--global-batch-size 56 or 64, or --batches-per-allreduce 3 or 5, or --bn-groups 1");
}

struct Refused {
  std::string line;
  int64_t ranks;
  std::string what;
  std::string hint;

  friend void PrintTo(const Refused& run, std::ostream* out) {
    *out << run.line << " on " << run.ranks;
  }
};

class DivideBatchRefuses : public ::testing::TestWithParam<Refused> {};

TEST_P(DivideBatchRefuses, WithTheNearestValuesThatWork) {
  const Refused& want = GetParam();
  const auto error = usage_error([&] { divided(want.line, want.ranks, 1); });
  ASSERT_TRUE(error) << want.line;
  EXPECT_EQ(error->code(), ExitCode::kUsage);
  EXPECT_EQ(error->what(), want.what) << want.line;
  EXPECT_EQ(error->hint(), want.hint) << want.line;
}
INSTANTIATE_TEST_SUITE_P(
    Runs,
    DivideBatchRefuses,
    ::testing::Values(
        Refused{"-b 64 --global-batch-size 256",
                8,
                "-b 64 and --global-batch-size 256 differ",
                "--global-batch-size 256 alone, or -b 64 alone"},
        Refused{
            "--shards 4", 8, "--shards 4 is too few for 8 ranks", "--shards 8, or at most 4 ranks"},
        Refused{"--shards 6 --sync-bn",
                8,
                "--shards 6 is too few for 8 ranks",
                "--shards 8, or at most 6 ranks"},
        Refused{"--shards 8 --bn-groups 3 -b 96",
                1,
                "8 shards do not make 3 equal BN groups",
                "--shards 6 or 9, or --bn-groups 2 or 4"},
        Refused{"--shards 6",
                4,
                "6 shards do not make 4 equal BN groups",
                "--shards 4 or 8, or --bn-groups 2"},
        Refused{"--global-batch-size 100",
                8,
                "100 images per step do not make 8 equal parts",
                "--global-batch-size 96 or 104, or --bn-groups 4"},
        Refused{"-b 10 --bn-groups 8 --shards 8",
                1,
                "10 images per step do not make 8 equal parts",
                "-b 8 or 16, or --bn-groups 2"},
        Refused{"-b 64 --batches-per-allreduce 4 --global-batch-size 256",
                8,
                "-b 64 and --global-batch-size 256 differ",
                "--global-batch-size 256 alone, or -b 64 alone"},
        Refused{"--global-batch-size 100 --batches-per-allreduce 8",
                1,
                "100 images per step do not make 8 equal parts",
                "--global-batch-size 96 or 104, or --batches-per-allreduce 5 or 10"}));

TEST(Mixing, WantsTwoImagesInAShard) {
  const auto check = [](const std::string& line, int64_t images = 1000) {
    const RunRequest request = make_run_request(options_of(line));
    return usage_error(
        [&] { check_mixing(request, divide_batch(request.batch, request.device, 1, 1), images); });
  };
  EXPECT_TRUE(check("-b 16 --shards 16 --mixup 0.8"));
  EXPECT_TRUE(check("-b 1 --cutmix 1"));
  EXPECT_FALSE(check("-b 16 --shards 8 --mixup 0.8"));
  EXPECT_FALSE(check("-b 16 --shards 16"));
  EXPECT_TRUE(check("-b 64 --shards 8 --mixup 0.8", 8)) << "no step has more images";
  EXPECT_FALSE(check("-b 64 --shards 8 --mixup 0.8", 9));
}

// "12 of 20, 10" of a step's images are not mixed.
std::string unmixed(const std::string& line, int64_t images = 1000) {
  const RunRequest request = make_run_request(options_of(line));
  if (!request.augmentation.mixes()) return "none";
  const Mixing mixing = mixing_of(divided(line, 1, 1), images);
  return fmt::format("{} of {}, {}", mixing.unmixed, mixing.images, mixing.better_shards);
}

TEST(Mixing, CountsTheImagesWithoutAPartner) {
  EXPECT_EQ(unmixed("-b 20 --shards 16"), "none");
  EXPECT_EQ(unmixed("-b 20 --shards 16 --mixup 0.8"), "12 of 20, 10");
  EXPECT_EQ(unmixed("-b 24 --shards 8 --cutmix 1"), "8 of 24, 6");
  EXPECT_EQ(unmixed("-b 64 --shards 16 --mixup 0.2"), "0 of 64, 0");
  EXPECT_EQ(unmixed("-b 5 --mixup 0.2"), "1 of 5, 0");
  EXPECT_EQ(unmixed("-b 12 --shards 4 --bn-groups 2 --batches-per-allreduce 2 --mixup 1"),
            "8 of 24, 2");
  EXPECT_EQ(unmixed("-b 64 --shards 8 --mixup 0.8", 20), "4 of 20, 5")
      << "of a data set that is smaller than the batch";
}

TEST(DropLast, WantsAWholeStep) {
  const BatchDivision kept = divided("-b 256", 2, 1);
  EXPECT_FALSE(kept.drop_last);
  check_steps_of(kept, 1);
  const BatchDivision dropped = divided("-b 256 --drop-last", 2, 1);
  EXPECT_TRUE(dropped.drop_last);
  check_steps_of(dropped, 511);  // divided between two ranks, one image is seen twice
  const auto error = usage_error([&] { check_steps_of(dropped, 510); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->why(), "a step takes 512 images, and 510 are there to train on");
}

TEST(AugRepeats, WantsAnImageForEachGroupAndMicroStep) {
  const BatchDivision batch =
      divided("-b 1 --batches-per-allreduce 2000 --aug-repeats 2 --shards 1", 1, 1);
  check_steps_of(batch, 2048);
  const auto error = usage_error([&] { check_steps_of(batch, 2047); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->why(), "2047 images are dealt to 2000 batch-norm groups and micro-steps");
}

std::vector<int64_t> reach_of(const std::string& line, int64_t ranks) {
  const RunRequest request = make_run_request(options_of(line));
  return same_bits_ranks(divide_batch(request.batch, request.device, ranks, 1), request.exchange);
}

std::string text_of(const std::string& line, int64_t ranks) {
  const RunRequest request = make_run_request(options_of(line));
  return same_bits_text(divide_batch(request.batch, request.device, ranks, 1), request.exchange);
}

TEST(Reach, RankCountsWhoseShardsAreSubtrees) {
  EXPECT_THAT(reach_of("", 1), ElementsAre(1));
  EXPECT_THAT(reach_of("", 2), ElementsAre(1, 2));
  EXPECT_THAT(reach_of("", 8), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(reach_of("--shards 16 --sync-bn", 1), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(reach_of("--shards 16 --sync-bn", 16), ElementsAre(1, 2, 4, 8, 16));
  EXPECT_THAT(reach_of("--shards 6 --sync-bn", 1), ElementsAre(1));
  EXPECT_THAT(reach_of("--shards 6 --sync-bn", 3), ElementsAre(1, 3));
  EXPECT_THAT(reach_of("--shards 6 --sync-bn", 2), ElementsAre(1));
  EXPECT_THAT(reach_of("--shards 8 --sync-bn", 3), ElementsAre(1, 2, 4, 8));
}

TEST(DivideBatch, CudaHasFewerShards) {
  const std::string shards = "--device cuda --global-batch-size 1024 --shards ";
  EXPECT_EQ(divided(shards + "256 --bn-groups 1", 1, 1).shards, 256);
  EXPECT_EQ(divided(shards + "512 --bn-groups 2", 2, 1).shards, 512);
  const auto error = usage_error([&] { divided(shards + "257 --bn-groups 1", 1, 1); });
  ASSERT_TRUE(error);
  EXPECT_STREQ(error->what(), "--shards 257 is too many for CUDA on 1 rank");
  EXPECT_THAT(error->hint(), ::testing::HasSubstr("--shards 256"));
  EXPECT_TRUE(usage_error([&] { divided(shards + "512 --bn-groups 1", 64, 1); }));
  EXPECT_EQ(text_of("--device cuda --global-batch-size 192 --shards 192 --bn-groups 1", 1),
            "same bits on 1 rank (192 images per step, 192 shards, 1 BN group); "
            "on 1,2,4,8 ranks with --shards 256");
}

TEST(Reach, TextSaysWhatToPass) {
  EXPECT_EQ(text_of("", 8),
            "same bits on 1,2,4,8 ranks (512 images per step, 8 shards, 8 BN groups)");
  EXPECT_EQ(text_of("", 2),
            "same bits on 1,2 ranks (128 images per step, 2 shards, 2 BN groups); "
            "on 1,2,4,8 ranks with --shards 8");
  EXPECT_EQ(text_of("", 1),
            "same bits on 1 rank (64 images per step, 1 shard, 1 BN group); "
            "on 1,2,4,8 ranks with --shards 8");
  EXPECT_EQ(text_of("", 3), "same bits on 1,3 ranks (192 images per step, 3 shards, 3 BN groups)");
  EXPECT_EQ(text_of("-b 63 --shards 3 --bn-groups 3", 1),
            "same bits on 1 rank (63 images per step, 3 shards, 3 BN groups)");
  EXPECT_EQ(text_of("--shards 8 --sync-bn", 3),
            "same bits: off, 3 ranks cannot share the shards as subtrees "
            "(192 images per step, 8 shards, 1 BN group); on with --shards 12");
}

TEST(Reach, TextCountsMicroSteps) {
  EXPECT_EQ(
      text_of("-b 8 --batches-per-allreduce 4 --shards 8", 2),
      "same bits on 1,2,4,8 ranks (64 images per step in 4 micro-steps, 8 shards, 2 BN groups)");
}

TEST(Reach, OffWhereTheAlgorithmLeavesTheTree) {
  for (const char* algorithm : {"ring", "mpi", "none"}) {
    const std::string line = fmt::format("--shards 8 --algorithm {}", algorithm);
    EXPECT_THAT(reach_of(line, 8), ElementsAre()) << algorithm;
  }
  EXPECT_THAT(reach_of("--shards 8 --algorithm star", 8), ElementsAre(1, 2, 4, 8));
  EXPECT_EQ(text_of("--algorithm ring", 8),
            "same bits: off, --algorithm ring sums in an order that depends on the number of ranks "
            "(512 images per step, 8 shards, 8 BN groups); on with --algorithm tree");
  EXPECT_EQ(text_of("--algorithm none", 2),
            "same bits: off, --algorithm none exchanges nothing: the ranks' weights drift apart, "
            "rank 0's are evaluated and saved (128 images per step, 2 shards, 2 BN groups)");
}

// Advice in a text must work when a user follows it.
TEST(Reach, AdviceWorks) {
  EXPECT_THAT(reach_of("--shards 8", 2), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(reach_of("--shards 12 --sync-bn", 3), ElementsAre(1, 3));
}

}  // namespace
}  // namespace lockstep::trainers::batch_division_test
