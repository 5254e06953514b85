// Tests the frames of lockstep watch, and how it follows growing files.
#include <fstream>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include "core/error.h"
#include "core/unique_fd.h"
#include "core/words.h"
#include "inspect/runs/frame_text.h"
#include "inspect/runs/run_follower.h"
#include "inspect/runs/watch_frame.h"
#include "tests/trainers/made_run.h"

namespace lockstep::trainers::watch_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::made_exchange;
using testing::made_record;
using ::testing::Not;
using testing::TempDir;
using testing::train_line;
using testing::write_text;

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TEST(FrameText, CutsAndFlowsByCharacters) {
  EXPECT_EQ(cut_to("größe", 3), "grö");
  EXPECT_EQ(cut_to("größe", 0), "");
  EXPECT_THAT(flowed({"one", "two", "three"}, 9), ElementsAre("one · two", "three"));
  EXPECT_THAT(flowed({"seventeen"}, 5), ElementsAre("seven"));
  EXPECT_EQ(bar_text(0.5, 4), "━━──");
  EXPECT_EQ(FrameLine(5, true).add("abc", 31).add("def").text(), "\x1b[31mabc\x1b[0mde");
}

// A running job of two ranks: this process locks its directory.
class WatchedFiles : public ::testing::Test {
 protected:
  WatchedFiles() {
    fs::create_directories(run_);
    write_record();
    lock_.emplace(::open((run_ / ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    EXPECT_EQ(flock(lock_->get(), LOCK_EX | LOCK_NB), 0);
  }

  void write_record() { write_text(run_ / "run.json", to_json(record_)); }
  void append(const std::string& text) {
    std::ofstream(run_ / "metrics.jsonl", std::ios::app | std::ios::binary) << text;
  }
  void append_steps(int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; step += 10) {
      append(train_line({.step = step,
                         .loss = 200.0 / static_cast<double>(step),
                         .slowest_rank = 1,
                         .skew = 0.3}) +
             "\n");
    }
  }
  std::string frame(TerminalSize size = {}, bool follows = true) {
    return joined(watch_frame(follower_.update(), {.size = size, .follows = follows}));
  }

  const TempDir dir_;
  const fs::path run_ = dir_ / "run\x1b[2J";
  RunRecord record_ = made_record(2);
  std::optional<UniqueFd> lock_;
  RunFollower follower_{run_};
};

TEST_F(WatchedFiles, ShowsARunThatGoesOn) {
  EXPECT_THAT(frame(), HasSubstr("No figures yet: they come after the first step"));
  append_steps(10, 100);
  append(R"({"split":"val","epoch":0,"step":100,"loss":0.5,"acc1":91.5})"
         "\n");
  append_steps(110, 150);
  const std::string text = frame();
  for (const char* part : {"run\\x1b[2J · running · convnet on 2 ranks",
                           "step 150 of 300 · epoch 2 of 3 · 1.5 s left",
                           "6,400 images/s · 3,200 per rank",
                           "exposed communication 10 % of a step",
                           "training loss           1.333    ███▄",
                           "test loss                 0.5     ",
                           "training accuracy, %       50    ▁▁▁",
                           "test accuracy, %         91.5     ",
                           "rank 0   ·",
                           "▓ slow 100 %",
                           "! rank 1 is slower than the others in most steps",
                           "step 100: test accuracy 91.50 %",
                           "The run goes on; Ctrl-C closes this view alone.\n"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(frame({}, false), HasSubstr("The run goes on.\n"));
}

TEST_F(WatchedFiles, FitsEveryWindow) {
  append_steps(10, 290);
  append(R"({"split":"val","epoch":2,"step":290,"loss":0.5,"acc1":91.5})"
         "\n");
  constexpr TerminalSize kSizes[] = {{80, 24}, {40, 24}, {40, 12}, {12, 5}, {1, 1}, {200, 60}};
  for (const TerminalSize size : kSizes) {
    const auto lines = watch_frame(follower_.update(), {.size = size, .follows = true});
    EXPECT_LE(std::ssize(lines), size.rows);
    for (const std::string& line : lines) EXPECT_LE(characters_of(line), size.columns) << line;
    EXPECT_EQ(lines.back(),
              cut_to("The run goes on; Ctrl-C closes this view alone.", size.columns));
  }
  EXPECT_THAT(frame({40, 24}), AllOf(HasSubstr("training loss "), HasSubstr("test accuracy, %")));
}

TEST_F(WatchedFiles, ReadsEachLineOnceAndNoHalfLine) {
  append_steps(10, 50);
  const std::string line = train_line({.step = 60}) + "\n";
  append(line.substr(0, 30));
  EXPECT_EQ(follower_.update().curves.last_step(), 50);
  append(line.substr(30));
  EXPECT_EQ(follower_.update().curves.last_step(), 60);
  EXPECT_EQ(follower_.update().curves.train_lines(), 6);
  EXPECT_EQ(follower_.update().curves.broken_lines(), 0);
  fs::remove(run_ / "metrics.jsonl");  // like a run that continues from step 20
  write_text(run_ / "new", train_line({.step = 10}) + "\n" + train_line({.step = 20}) + "\n");
  fs::rename(run_ / "new", run_ / "metrics.jsonl");
  EXPECT_EQ(follower_.update().curves.last_step(), 20);
  EXPECT_EQ(follower_.update().curves.train_lines(), 2);
}

TEST_F(WatchedFiles, SaysHowItEnded) {
  append_steps(10, 300);
  record_.exit_code = ExitCode::kDone;
  record_.final_metrics = FinalMetrics{.evaluation = Evaluation{.correct1 = 9, .total = 10}};
  write_record();
  EXPECT_THAT(frame(), HasSubstr("The run has ended: done, 90.00 % of the test images.\n"));
  record_.final_metrics.reset();
  record_.exit_code = ExitCode::kDiverged;
  write_record();
  EXPECT_THAT(frame(), HasSubstr("The run has ended: failed, exit code 6: the loss or the ranks"));
  record_.exit_code.reset();
  write_record();
  lock_.reset();
  EXPECT_THAT(frame(), HasSubstr("The run has ended: it was killed, its process is gone.\n"));
}

TEST_F(WatchedFiles, KnowsARunThatStarts) {
  EXPECT_FALSE(run_is_starting(run_));
  fs::remove(run_ / "run.json");
  EXPECT_TRUE(run_is_starting(run_));
  lock_.reset();
  EXPECT_FALSE(run_is_starting(run_));
  EXPECT_THROW(follower_.update(), EnvironmentError);
}

TEST_F(WatchedFiles, WarnsOfWhatIsWrong) {
  append_steps(10, 40);
  append(R"({"split":"train","epoch":0,"step":60,"loss":null,"nonfinite":true,"skipped_steps":3,)"
         R"("loss_scale":1024,"loader_waited":1,"loader_busy_with":"disk\u001b[31m"})"
         "\n[7]\n");
  write_text(run_ / "numerics.json", "{}");
  const std::string text = frame({80, 48});
  for (const char* part : {"! numerics.json says where",
                           "! 1 logged losses were infinite or NaN",
                           "! 3 steps skipped, loss scale 1024",
                           "! steps wait 20 % of their time for images (disk\\x1b[31m)",
                           "! 1 lines of metrics.jsonl cannot be read"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

}  // namespace
}  // namespace lockstep::trainers::watch_test
