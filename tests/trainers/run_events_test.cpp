#include "trainers/report/run_events.h"

#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/temp_dir.h"

namespace lockstep::trainers::run_events_test {
namespace {

namespace fs = std::filesystem;
using testing::read_text;
using testing::TempDir;
using testing::write_text;

constexpr size_t kRecordHead = 12, kRecordTail = 4, kWallTime = 9;

// Events without their wall times.
std::vector<std::string> events_in(const fs::path& folder) {
  const std::string file = read_text(event_file_in(folder));
  std::vector<std::string> events;
  for (size_t at = 0; at + kRecordHead <= file.size();) {
    uint64_t size = 0;
    std::memcpy(&size, file.data() + at, sizeof(size));
    events.push_back(file.substr(at + kRecordHead, size).substr(kWallTime));
    at += kRecordHead + size + kRecordTail;
  }
  return events;
}

// Steps below 128, one byte each.
std::vector<int> steps_in(const fs::path& folder) {
  std::vector<int> steps;
  for (const std::string& event : events_in(folder)) {
    if (event.front() == 0x10) steps.push_back(event[1]);
  }
  return steps;
}

void append_steps(const fs::path& folder, int64_t last, std::initializer_list<int> steps) {
  EventFile file(folder, last);
  for (const int step : steps) file.append(step, std::vector<Scalar>{{"train/loss", 0.5}});
}

TEST(EventFile, ChecksumsAreCrc32c) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
}

// Bytes that tensorboard 2.21 writes for these events.
TEST(EventFile, HoldsTensorBoardsBytes) {
  const TempDir dir;
  EventFile(dir.path(), 0).append(300, std::vector<Scalar>{{"train/loss", 0.25}, {"lr", 0.1}});
  const std::vector<std::string> events = events_in(dir.path());
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0],
            "\x1a\x0d"
            "brain.Event:2");
  EXPECT_EQ(events[1],
            std::string("\x10\xac\x02\x2a\x1e"
                        "\x0a\x11\x0a\x0atrain/loss\x15\x00\x00\x80\x3e"
                        "\x0a\x09\x0a\x02lr\x15\xcd\xcc\xcc\x3d",
                        35));
  const std::string file = read_text(event_file_in(dir.path()));
  EXPECT_EQ(file.substr(0, kRecordHead), std::string("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", 12));
}

TEST(EventFile, AContinuationDropsLaterSteps) {
  const TempDir dir;
  append_steps(dir.path(), 0, {1, 2, 3, 4, 5});
  append_steps(dir.path(), 3, {4, 6});
  EXPECT_EQ(steps_in(dir.path()), (std::vector{1, 2, 3, 4, 6}));
  append_steps(dir.path(), 0, {1});
  EXPECT_EQ(steps_in(dir.path()), (std::vector{1}));
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
    ASSERT_EQ(steps_in(dir.path()), (std::vector{1, 2, 4})) << size << " bytes";
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

// Tag -> its value, of the last event that has it. Tags and events of fewer than 128 bytes.
std::map<std::string, float> values_in(const fs::path& folder) {
  std::map<std::string, float> values;
  for (const std::string& event : events_in(folder)) {
    for (size_t at = event.find('\x2a') + 2; event.front() == 0x10 && at < event.size();) {
      const auto size = static_cast<size_t>(event[at + 1]);
      const auto tag = static_cast<size_t>(event[at + 3]);
      std::memcpy(&values[event.substr(at + 4, tag)], event.data() + at + 5 + tag, sizeof(float));
      at += 2 + size;
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
  EXPECT_EQ(steps_in(dir.path()), std::vector{7});
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
  EXPECT_EQ(steps_in(dir.path()), (std::vector{1, 2}));
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
