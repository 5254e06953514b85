// From findings to reports: how ranks combine them, when they are reported, and in which words.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "comm/shared/thread_ranks.h"
#include "engine/observe/black_box.h"
#include "tests/trainers/tiny_run.h"
#include "trainers/debug/numerics_report.h"

namespace lockstep::trainers::numerics_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

NumericsFind find_at(int64_t step, int64_t event) {
  return {.step = step,
          .event = event,
          .phase = "backward",
          .op = "conv2d",
          .layer = "layer1.0.conv1",
          .after = "bn1",
          .tensor = "gradient of its input",
          .type = "f16 (8,16,32,32)",
          .count = 3,
          .shards = {1},
          .images = {17, 203}};
}

// The finding on which three ranks agree, as rank 2 knows it.
std::optional<NumericsFind> agreed(const std::vector<std::optional<NumericsFind>>& finds) {
  std::optional<NumericsFind> result;
  comm::spawn_ranks(3, [&](Communicator& ranks) {
    const auto found = earliest(ranks, finds[static_cast<size_t>(ranks.rank())]);
    if (ranks.rank() == 2) result = found;
  });
  return result;
}

TEST(NumericsFind, TheEarliestOverRanksHolds) {
  EXPECT_FALSE(agreed({std::nullopt, std::nullopt, std::nullopt}));
  const auto by_event = agreed({find_at(4, 7), find_at(4, 6), std::nullopt});
  ASSERT_TRUE(by_event);
  EXPECT_EQ(by_event->event, 6);
  EXPECT_EQ(to_json(*by_event), to_json(find_at(4, 6)));
  EXPECT_EQ(agreed({find_at(4, 7), std::nullopt, find_at(3, 9)})->step, 3);
}

TEST(NumericsFind, EqualOnesAreJoined) {
  NumericsFind other = find_at(4, 6);
  other.shards = {5, 6};
  other.images = {40000};
  const auto joined = agreed({find_at(4, 6), find_at(4, 7), other});
  ASSERT_TRUE(joined);
  EXPECT_THAT(joined->shards, ElementsAre(1, 5, 6));
  EXPECT_THAT(joined->images, ElementsAre(17, 203, 40000));
  EXPECT_EQ(joined->count, 6);
  NumericsFind weights = find_at(4, 0);
  weights.phase = "weights";
  EXPECT_EQ(agreed({weights, weights, weights})->count, 3) << "replicas";
}

TEST(NumericsReport, SaysWhatWhereAndWhen) {
  const NumericsReport report{.trouble = Trouble::kSkips,
                              .what = "ten steps in a row were skipped",
                              .step = 13,
                              .scales = {{.step = 12, .scale = 128, .skipped = true},
                                         {.step = 13, .scale = 64, .skipped = true}},
                              .first = find_at(13, 6),
                              .shards = 4,
                              .ranks = 2};
  EXPECT_THAT(
      lines(report),
      ElementsAre(
          "lockstep: numerics: ten steps in a row were skipped at step 13",
          "  first: layer1.0.conv1 (conv2d), backward: the gradient of its input: 3 elements "
          "of f16 (8,16,32,32) infinite or NaN",
          "  where: step 13, rank 0, shard 1 of 4, images 17, 203",
          "  scale: 128 after step 12 (skipped), 64 after step 13 (skipped)"));
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json.at("trouble"), "skips");
  EXPECT_EQ(json.at("step"), 13);
  EXPECT_EQ(json.at("scales").at(1).at("scale"), 64);
  EXPECT_EQ(json.at("first").at("layer"), "layer1.0.conv1");
  EXPECT_EQ(json.at("first").at("ranks"), nlohmann::json({0}));
}

TEST(NumericsReport, LongListsAreCut) {
  NumericsReport report{.what = "the loss is nan", .step = 5, .first = find_at(4, 6)};
  report.first->images.assign(30, 9);
  EXPECT_THAT(lines(report)[2], HasSubstr("images 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9 and 18 more"));
  for (int64_t step = 1; step <= 4; ++step) report.scales.push_back({.step = step, .scale = 2});
  EXPECT_EQ(lines(report)[3], "  scale: ..., 2 after step 2, 2 after step 3, 2 after step 4");
  report.first.reset();
  EXPECT_THAT(lines(report)[1], HasSubstr("a sum over shards or ranks"));
  EXPECT_TRUE(nlohmann::json::parse(to_json(report)).at("first").is_null());
}

// Rank r of W owns shards [floor(r S/W), floor((r+1) S/W)).
TEST(NumericsReport, ShardsHaveOwners) {
  for (const int64_t ranks : {1, 2, 3, 5, 8}) {
    for (int64_t shard = 0; shard < 8; ++shard) {
      NumericsReport report{.what = "", .first = find_at(1, 1), .shards = 8, .ranks = ranks};
      report.first->shards = {shard};
      ASSERT_EQ(report.owners().size(), 1U);
      const int64_t owner = report.owners()[0];
      EXPECT_LE(owner * 8 / ranks, shard);
      EXPECT_GT((owner + 1) * 8 / ranks, shard);
    }
  }
}

class NumericsWatchTest : public ::testing::Test {
 protected:
  Stream stream_;
  testing::TinyRun run_{1};
};

TEST_F(NumericsWatchTest, WatchesTheStepAfterNineSkips) {
  NumericsWatch numerics(
      {.when = NumericsWatch::When::kTenthSkip, .run_ranks = 1, .plan = {}}, stream_, run_.model);
  for (const int64_t skips : {0, 8, 9, 10, 11}) {
    numerics.begin_step(20, 4, skips);
    EXPECT_EQ(numerics.listener() != nullptr, skips == 9) << skips;
    EXPECT_EQ(numerics.end_step(2, skips + 1), skips == 9) << skips;
  }
}

TEST_F(NumericsWatchTest, KeepsTheHistoryOfTheScale) {
  NumericsWatch numerics(
      {.when = NumericsWatch::When::kEveryStep, .run_ranks = 1, .plan = {}}, stream_, run_.model);
  numerics.begin_step(1, 8, 0);
  EXPECT_NE(numerics.listener(), nullptr);
  numerics.end_step(8, 0);
  numerics.begin_step(2, 8, 0);
  numerics.end_step(16, 0);
  numerics.begin_step(3, 16, 0);
  numerics.end_step(8, 1);
  comm::spawn_ranks(1, [&](Communicator& ranks) {
    const NumericsReport report = numerics.report(ranks, Trouble::kLoss, "the loss is nan", 3);
    ASSERT_EQ(report.scales.size(), 2U);
    EXPECT_EQ(report.scales[0].step, 2);
    EXPECT_EQ(report.scales[0].scale, 16);
    EXPECT_FALSE(report.scales[0].skipped);
    EXPECT_EQ(report.scales[1].step, 3);
    EXPECT_TRUE(report.scales[1].skipped);
  });
}

}  // namespace
}  // namespace lockstep::trainers::numerics_test
