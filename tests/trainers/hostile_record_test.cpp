// Checkpoints that were edited and sealed again: their digests are right, their numbers are not.
// Cases are named after the rows of the attack that found them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "engine/update/schedule.h"
#include "tests/support/temp_dir.h"
#include "tests/trainers/tiny_run.h"
#include "trainers/checkpoint/checkpoint_record.h"

namespace lockstep::trainers::attack_record_test {
namespace {

using ::testing::HasSubstr;
using testing::TempDir;
using testing::tiny_identity;
using testing::tiny_position;
using testing::TinyRun;

CheckpointRecord tiny_record() {
  return {.run = tiny_identity(), .position = tiny_position(20), .model_digest = {}};
}

// Reads a pair of files with this record by read_checkpoint(). Returns the exit code and the
// reason, or "accepted".
std::string verdict_on(CheckpointRecord record) {
  const TempDir dir;
  const TinyRun run(1);
  const std::string file = model_file_name(20);
  write_checkpoint(Folder(dir.path()),
                   file,
                   record,
                   file_tensors(run.model.state()),
                   file_tensors(run.optimizer.state()));
  try {
    read_checkpoint(dir / file);
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.code())) + ": " + error.why();
  }
  return "accepted";
}

// Returns the result of record_of() for a record in which the text of one key is replaced.
std::string verdict_on(const char* key, const std::string& text) {
  Texts metadata = to_metadata(tiny_record());
  metadata[key] = text;
  try {
    record_of(metadata, "file");
  } catch (const CheckpointError& error) {
    return error.why();
  }
  return "accepted";
}

TEST(PartsOfABatch, NothingIsDividedByZero) {
  ASSERT_EQ(verdict_on(tiny_record()), "accepted");
  CheckpointRecord record = tiny_record();
  record.run.micro_steps = 0;
  EXPECT_EQ(verdict_on(record), "4: its 'micro_steps' is 0, expected 1 to 1000000");
  record = tiny_record();
  record.run.bn_groups = 0;
  EXPECT_EQ(verdict_on(record), "4: its 'bn_groups' is 0, expected 1 to 65536");
  record = tiny_record();
  record.run.global_batch = 0;
  EXPECT_EQ(verdict_on(record), "4: its 'global_batch' is 0, expected 1 to 1000000000000");
  record = tiny_record();
  record.run.shards = 0;
  EXPECT_EQ(verdict_on(record), "4: its 'shards' is 0, expected 1 to 65536");
}

TEST(PartsOfABatch, PartsThatDoNotFitTogetherAreRefused) {
  CheckpointRecord record = tiny_record();
  record.run.shards = 6;
  EXPECT_EQ(verdict_on(record), "4: its 'shards' is 6, no multiple of bn_groups, 4");
  record = tiny_record();
  record.run.global_batch = 60;
  EXPECT_EQ(verdict_on(record),
            "4: its 'global_batch' is 60, no multiple of bn_groups times micro_steps, 8");
}

TEST(RecordedNumbers, AbsurdPlacesAndCountsAreRefused) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  const std::vector<std::pair<const char*, int64_t TrainingPosition::*>> places = {
      {"steps", &TrainingPosition::steps},
      {"epoch", &TrainingPosition::epoch},
      {"best_epoch", &TrainingPosition::best_epoch},
      {"applied_steps", &TrainingPosition::applied}};
  for (const auto& [name, place] : places) {
    CheckpointRecord record = tiny_record();
    record.position.*place = kHuge;
    EXPECT_THAT(verdict_on(record), HasSubstr(fmt::format("its '{}' is {}, ", name, kHuge)));
  }
  CheckpointRecord record = tiny_record();
  record.position.best.correct1 = record.position.best.total + 1;
  EXPECT_EQ(verdict_on(record), "4: its 'best.correct1' is 101, expected 0 to 100");
  record = tiny_record();
  record.position.sums.correct5 = record.position.sums.images + 1;
  EXPECT_EQ(verdict_on(record), "4: its 'epoch_sums.correct5' is 321, expected 0 to 320");
}

TEST(RecordedNumbers, NumbersOfAnotherKindAreRefused) {
  const auto sums = [](const std::string& correct1) {
    return R"({"steps":5,"images":320,"loss":0.5,"correct5":200,"correct1":)" + correct1 + "}";
  };
  ASSERT_EQ(verdict_on("epoch_sums", sums("100")), "accepted");
  for (const char* text : {"9e95", "-1", "1.5", "true", "18446744073709551615", "null", "\"1\""}) {
    EXPECT_THAT(verdict_on("epoch_sums", sums(text)), HasSubstr("its 'epoch_sums' is")) << text;
  }
  EXPECT_THAT(verdict_on("steps", "9223372036854775807"), HasSubstr("its 'steps' is"));
}

TEST(RecordedNumbers, APlaceOutsideItsEpochIsRefused) {
  const auto accepts = [](int64_t steps, int64_t steps_of_epoch) {
    TrainingPosition at = tiny_position(steps);
    at.sums.steps = steps_of_epoch;
    try {
      check_place(at, 10);
    } catch (const CheckpointError&) {
      return false;
    }
    return true;
  };
  ASSERT_EQ(tiny_position(35).epoch, 3);
  EXPECT_TRUE(accepts(35, 5));
  EXPECT_TRUE(accepts(40, 10));
  EXPECT_FALSE(accepts(36, 5));
  EXPECT_FALSE(accepts(41, 11));
}

TEST(RecordedNumbers, StatesInsideTheRecordAreReadAlike) {
  ASSERT_EQ(verdict_on("early_stopping", R"({"worse_epochs":2})"), "accepted");
  for (const char* text : {"",
                           "{}",
                           "[1]",
                           R"({"worse_epochs":"x"})",
                           R"({"worse_epochs":9e95})",
                           R"({"worse_epochs":9223372036854775807})"}) {
    EXPECT_THAT(verdict_on("early_stopping", text), HasSubstr("its 'early_stopping' is")) << text;
  }
  ASSERT_EQ(verdict_on("schedule", "{}"), "accepted");
  ASSERT_EQ(verdict_on("schedule", R"({"factor":1,"bad_epochs":2})"), "accepted");
  for (const char* text : {"",
                           "[1]",
                           R"({"cooldown":3})",
                           R"({"factor":"x","bad_epochs":1})",
                           R"({"factor":1,"bad_epochs":9e95})"}) {
    EXPECT_THAT(verdict_on("schedule", text), HasSubstr("its 'schedule' is")) << text;
  }
}

std::string scale_state(const std::string& tracker,
                        const std::string& consecutive = "0",
                        const std::string& applied = "3",
                        const std::string& scale = "8") {
  return fmt::format(
      R"({{"scale":{},"_growth_tracker":{},"consecutive_skips":{},"applied":{},"skipped":1}})",
      scale,
      tracker,
      consecutive,
      applied);
}

TEST(RecordedNumbers, LossScalesThatNoRunWritesAreRefused) {
  ASSERT_EQ(verdict_on("grad_scaler", scale_state("1999", "9")), "accepted");
  for (const char* tracker : {"2000", "-1", "1.5", "true", "null", "9e99", "4294967297"}) {
    EXPECT_THAT(verdict_on("grad_scaler", scale_state(tracker)), HasSubstr("its 'grad_scaler' is"));
  }
  for (const std::string& text : {scale_state("0", "2147483647"),
                                  scale_state("0", "0", "9223372036854775807"),
                                  scale_state("0", "0", "3", "0"),
                                  scale_state("0", "0", "3", "-1"),
                                  scale_state("0", "0", "3", "1e39"),
                                  scale_state("0", "0", "3", "null"),
                                  std::string("{")}) {
    EXPECT_THAT(verdict_on("grad_scaler", text), HasSubstr("its 'grad_scaler' is")) << text;
  }
}

}  // namespace
}  // namespace lockstep::trainers::attack_record_test
