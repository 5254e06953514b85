#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/temp_dir.h"
#include "tests/trainers/options_of.h"
#include "trainers/report/run_log.h"

namespace lockstep::trainers::epoch_csv_test {
namespace {

using ::testing::HasSubstr;
using testing::read_text;
using testing::TempDir;
using testing::usage_error;
using testing::write_text;

EpochRow row(int epoch, int64_t step) {
  return {.start = std::chrono::system_clock::time_point(std::chrono::seconds(1700000000)),
          .seconds = 12.3456,
          .epoch = epoch,
          .step = step,
          .lr = 0.1,
          .train_loss = 1.5,
          .train_acc1 = 62.5,
          .train_acc5 = 99};
}

TEST(Tutorial, Item3_12ARowAnEpochStartsWithTimeAndSeconds) {
  EXPECT_EQ(csv_line(row(2, 30)), "2023-11-14T22:13:20Z,12.346,2,30,0.1,1.5,62.5,99,,,\n");
  EpochRow evaluated = row(2, 30);
  evaluated.evaluation = {.correct1 = 3, .correct5 = 4, .total = 4, .loss = 0.25};
  EXPECT_EQ(csv_line(evaluated), "2023-11-14T22:13:20Z,12.346,2,30,0.1,1.5,62.5,99,0.25,75,100\n");
  const auto cells = [](const std::string& line) { return std::ranges::count(line, ','); };
  EXPECT_EQ(cells(csv_line(row(0, 1))), cells(csv_header()));
  EXPECT_EQ(cells(csv_line(evaluated)), cells(csv_header()));
}

TEST(Tutorial, Item3_12AResumedRunAppendsWithoutOverlap) {
  const TempDir dir;
  const std::string file = dir / "epochs.csv";
  const EpochCsv first(file, {}, false);
  for (int epoch = 0; epoch < 2; ++epoch) first.append(row(epoch, 10 * epoch + 10));
  first.append(row(2, 25));                                      // stopped in epoch 2
  write_text(file, read_text(file) + "2023-11-14T22:13:20Z,1");  // killed while writing a row
  const EpochCsv second(file, 2, false);
  EXPECT_EQ(read_text(file), csv_header() + csv_line(row(0, 10)) + csv_line(row(1, 20)));
  second.append(row(2, 30));
  EXPECT_EQ(read_text(file),
            csv_header() + csv_line(row(0, 10)) + csv_line(row(1, 20)) + csv_line(row(2, 30)));
}

TEST(Tutorial, Item3_12OtherFilesAreNotTouched) {
  const TempDir dir;
  const std::string file = dir / "epochs.csv";
  write_text(file, "my,own,table\n");
  for (const std::optional<int64_t> resumed :
       {std::optional<int64_t>(), std::optional<int64_t>(3)}) {
    const auto error = usage_error([&] { EpochCsv(file, resumed, false); });
    ASSERT_TRUE(error);
    EXPECT_THAT(error->why(), HasSubstr("does not begin with the columns"));
  }
  EXPECT_EQ(read_text(file), "my,own,table\n");
  EpochCsv(file, {}, true);
  EXPECT_EQ(read_text(file), csv_header());
  EpochCsv(file, {}, true).append(row(0, 10));
  EXPECT_THAT(usage_error([&] { EpochCsv(file, {}, false); })->why(), HasSubstr("another run"));
  EXPECT_THROW(EpochCsv(dir / "no" / "such" / "folder.csv", {}, false), EnvironmentError);
  const auto unreadable = usage_error([&] { EpochCsv(dir.path(), {}, false); });
  EXPECT_THAT(unreadable->why(), HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace lockstep::trainers::epoch_csv_test
