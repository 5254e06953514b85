#include "trainers/report/run_events.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/event_reader.h"
#include "tests/support/temp_dir.h"

namespace lockstep::trainers::run_events_test {
namespace {

namespace fs = std::filesystem;

using testing::read_events;
using testing::read_text;
using testing::ReadEvent;
using testing::TempDir;
using testing::write_text;

constexpr size_t kRecordHead = 12;

std::vector<int64_t> steps_in(const fs::path& folder) {
  std::vector<int64_t> steps;
  for (const ReadEvent& event : read_events(folder)) {
    if (event.file_version.empty()) steps.push_back(event.step);
  }
  return steps;
}

void append_steps(const fs::path& folder, int64_t last, std::initializer_list<int64_t> steps) {
  EventFile file(folder, last);
  for (const int64_t step : steps) file.append(step, std::vector{scalar_value("train/loss", 0.5)});
}

TEST(EventFile, ChecksumsAreCrc32c) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
}

// The expected bytes are those that tensorboard 2.21 writes for these events.
TEST(EventFile, HoldsTensorBoardsBytes) {
  const TempDir dir;
  EventFile(dir.path(), 0)
      .append(300, std::vector{scalar_value("train/loss", 0.25), scalar_value("lr", 0.1)});
  constexpr size_t kWallTime = 9, kFirst = kRecordHead + kWallTime;
  const std::string file = read_text(event_file_in(dir.path()));
  EXPECT_EQ(file.substr(0, kRecordHead), std::string("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", 12));
  EXPECT_EQ(file.substr(kFirst, 15),
            "\x1a\x0d"
            "brain.Event:2");
  EXPECT_EQ(file.substr(kFirst + 15 + 4 + kFirst, 35),
            std::string("\x10\xac\x02\x2a\x1e"
                        "\x0a\x11\x0a\x0atrain/loss\x15\x00\x00\x80\x3e"
                        "\x0a\x09\x0a\x02lr\x15\xcd\xcc\xcc\x3d",
                        35));
}

TEST(EventFile, AContinuationDropsLaterSteps) {
  const TempDir dir;
  append_steps(dir.path(), 0, {1, 2, 3, 4, 5});
  append_steps(dir.path(), 3, {4, 6});
  EXPECT_EQ(steps_in(dir.path()), (std::vector<int64_t>{1, 2, 3, 4, 6}));
  append_steps(dir.path(), 0, {1});
  EXPECT_EQ(steps_in(dir.path()), (std::vector<int64_t>{1}));
}

// When the run continues, its session has not ended.
TEST(EventFile, AContinuationDropsTheSessionsEnd) {
  const TempDir dir;
  append_steps(dir.path(), 0, {1, 2});
  EventFile(dir.path(), 2).append(2, std::vector{session_end_value({})});
  append_steps(dir.path(), 2, {3});
  EXPECT_EQ(steps_in(dir.path()), (std::vector<int64_t>{1, 2, 3}));
}

TEST(EventFile, IsNewWhileItHoldsNoValues) {
  const TempDir dir;
  EXPECT_TRUE(EventFile(dir.path(), 0).is_new());
  EXPECT_TRUE(EventFile(dir.path(), 0).is_new()) << "a killed run's, with its first event alone";
  append_steps(dir.path(), 0, {1});
  EXPECT_FALSE(EventFile(dir.path(), 1).is_new());
  EXPECT_TRUE(EventFile(dir.path(), 0).is_new());
}

TEST(EventFile, AnEventThatAKillCutShortIsDropped) {
  const TempDir dir;
  append_steps(dir.path(), 0, {1, 2});
  const fs::path path = event_file_in(dir.path());
  const std::string whole = read_text(path);
  append_steps(dir.path(), 2, {3});
  const std::string longer = read_text(path);
  for (size_t size = whole.size(); size < longer.size(); ++size) {
    write_text(path, longer.substr(0, size));
    append_steps(dir.path(), 9, {4});
    ASSERT_EQ(steps_in(dir.path()), (std::vector<int64_t>{1, 2, 4})) << size << " bytes";
  }
}

TEST(EventFile, WhatFollowsADamagedEventIsDropped) {
  const TempDir dir;
  append_steps(dir.path(), 0, {1, 2, 3});
  const fs::path path = event_file_in(dir.path());
  std::string damaged = read_text(path);
  damaged[damaged.size() / 2] ^= 1;
  write_text(path, damaged);
  append_steps(dir.path(), 9, {});
  EXPECT_LT(steps_in(dir.path()).size(), 3U);
  EXPECT_EQ(damaged.find(read_text(path)), 0U);
}

TEST(EventFile, OneThatCannotBeReadIsNotReplaced) {
  const TempDir dir;
  const fs::path path = dir / "events.out.tfevents.1.host.1.0";
  fs::create_symlink(path.filename(), path);
  EXPECT_THROW(EventFile(dir.path(), 0), EnvironmentError);
  EXPECT_TRUE(fs::is_symlink(path));
}

TEST(EventFile, AFolderThatCannotBeMadeIsNamed) {
  const TempDir dir;
  write_text(dir / "file", "");
  try {
    const EventFile file(dir / "file" / "events", 0);
    FAIL() << "no error";
  } catch (const EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find("events.out.tfevents."), std::string::npos);
  }
}

// The value of each tag in the last event that has it.
std::map<std::string, float> values_in(const fs::path& folder) {
  std::map<std::string, float> values;
  for (const ReadEvent& event : read_events(folder)) {
    for (const auto& [tag, value] : event.values) {
      values[tag] = testing::number_in<float>(testing::field(value, 2));
    }
  }
  return values;
}

constexpr StepMetrics kTrain{.loss = 2, .loss_avg = 0.5, .acc1_avg = 50, .lr = 0.25};
constexpr Evaluation kVal{.correct1 = 3, .correct5 = 4, .total = 4, .loss = 0.125};

TEST(RunEvents, OwnTagsStandAtSteps) {
  const TempDir dir;
  RunEvents events(dir.path(), EventTags::kOwn, {});
  events.after_epoch(0, 7, kTrain, kVal);
  EXPECT_EQ(steps_in(dir.path()), std::vector<int64_t>{7});
  EXPECT_EQ(
      values_in(dir.path()),
      (std::map<std::string, float>{{"val/acc1", 75}, {"val/acc5", 100}, {"val/loss", 0.125}}));
}

TEST(RunEvents, TutorialZerosTagsHaveFoldersOfTheirOwn) {
  const TempDir dir;
  RunEvents events(dir.path(), EventTags::kTricks, {});
  events.after_step(1, kTrain);
  events.after_epoch(0, 7, kTrain, kVal);
  EXPECT_EQ(values_in(dir.path()), (std::map<std::string, float>{{"LR", 0.25}}));
  EXPECT_EQ(values_in(dir / "Loss_train"), (std::map<std::string, float>{{"Loss", 0.5}}));
  EXPECT_EQ(values_in(dir / "Loss_valid"), (std::map<std::string, float>{{"Loss", 0.125}}));
  EXPECT_EQ(values_in(dir / "Acc_train"), (std::map<std::string, float>{{"Acc", 0.5}}));
  EXPECT_EQ(values_in(dir / "Acc_valid"), (std::map<std::string, float>{{"Acc", 0.75}}));
}

TEST(RunEvents, TutorialOnesTagsCountEpochsFromOne) {
  const TempDir dir;
  RunEvents(dir.path(), EventTags::kApex, {}).after_epoch(0, 7, kTrain, kVal);
  RunEvents(dir.path(), EventTags::kApex, {.steps = 7, .epochs = 1})
      .after_epoch(1, 14, kTrain, kVal);
  EXPECT_EQ(steps_in(dir.path()), (std::vector<int64_t>{1, 2}));
}

TEST(RunEvents, AnEvaluationThatIsRepeatedStandsOnce) {
  const TempDir dir;
  for (const bool evaluates : {false, true}) {
    RunEvents events(dir.path(), EventTags::kOwn, {.steps = 7, .evaluates = evaluates});
    if (!evaluates) events.after_step(7, kTrain);
    events.after_epoch(0, 7, kTrain, kVal);
  }
  EXPECT_EQ(steps_in(dir.path()), (std::vector<int64_t>{7, 7}));  // the step and its evaluation
}

EventOpening opening() {
  return {.hparams = {{"lr", 0.25}},
          .texts = {{"run/command", "`train_convnet`"}},
          .images = Picture{.height = 1, .width = 1, .channels = 1, .pixels = "x"}};
}

TEST(RunEvents, WhatARunToldAtItsBeginningStandsOnce) {
  const TempDir dir;
  for (const int64_t steps : {0, 7}) {
    RunEvents events(dir.path(), EventTags::kOwn, {.steps = steps, .epochs = 0});
    events.begin([] { return opening(); });
    events.after_step(steps + 7, kTrain);
    events.end(steps + 7);
  }
  EXPECT_EQ(steps_in(dir.path()), (std::vector<int64_t>{0, 7, 14, 14}));
  const std::vector<ReadEvent> events = read_events(dir.path());
  std::vector<std::string> tags;
  for (const auto& [tag, value] : events[1].values) tags.push_back(tag);
  EXPECT_EQ(tags,
            (std::vector<std::string>{
                "_hparams_/session_start_info", "run/command/text_summary", "train/images"}));
  EXPECT_EQ(events.back().values.count("_hparams_/session_end_info"), 1U);
}

// Readers of the scripts' files must find only the tags that the scripts write.
TEST(RunEvents, TutorialsFilesHoldTheirTagsAlone) {
  const TempDir dir;
  const std::vector<float> weights = {1, 2};
  RunEvents events(dir.path(), EventTags::kApex, {});
  events.begin([] { return opening(); });
  events.histograms(3, std::vector<NamedValues>{{"weight/fc.bias", weights}});
  events.after_epoch(0, 7, kTrain, kVal);
  events.end(7);
  EXPECT_EQ(steps_in(dir.path()), (std::vector<int64_t>{1}));
  EXPECT_EQ(steps_in(dir / "details"), (std::vector<int64_t>{0, 3, 7}));
  remove_events(dir.path());
  EXPECT_FALSE(fs::exists(dir / "details"));
}

TEST(RunEvents, RemovingThemLeavesOtherFiles) {
  const TempDir dir;
  RunEvents(dir.path(), EventTags::kTricks, {}).after_epoch(0, 7, kTrain, kVal);
  write_text(dir / "Acc_valid" / "notes", "mine");
  remove_events(dir.path());
  EXPECT_TRUE(event_file_in(dir.path()).empty());
  EXPECT_FALSE(fs::exists(dir / "Loss_train"));
  EXPECT_EQ(read_text(dir / "Acc_valid" / "notes"), "mine");
}

}  // namespace
}  // namespace lockstep::trainers::run_events_test
