#include "trainers/checkpoint/checkpoint_writer.h"

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <random>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/safetensors.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temp_dir.h"
#include "tests/trainers/tiny_run.h"

namespace lockstep::trainers::checkpoint_writer_test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using testing::FileSizeLimit;
using ::testing::HasSubstr;
using testing::read_text;
using testing::TempDir;
using testing::tiny_identity;
using testing::tiny_position;
using testing::TinyRun;
using testing::write_text;
using testing::write_tiny;

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& file : fs::directory_iterator(folder)) names.insert(file.path().filename());
  return names;
}

std::vector<int64_t> steps_in(const fs::path& folder) {
  std::vector<int64_t> steps;
  for (const StoredCheckpoint& stored : list_checkpoints(folder)) steps.push_back(stored.step);
  return steps;
}

// Saves into a temporary folder; messages go to standard error.
class Writer : public ::testing::Test {
 protected:
  CheckpointWriter writer(int64_t keep = 3) {
    return {{.folder = [this]() -> const Folder& { return folder_; }, .keep = keep},
            tiny_identity(),
            console_};
  }
  void save(CheckpointWriter& to, int64_t step) { save(to, run_, step); }
  void save(CheckpointWriter& to,
            const TinyRun& run,
            int64_t step,
            const SavedFiles& files = {.checkpoint = true}) {
    to.save(files, {stream_, run.model, run.optimizer}, tiny_position(step));
    to.finish();
  }

  const TempDir dir_;
  const Folder folder_{dir_.path()};
  Stream stream_;
  TinyRun run_{1};
  Console console_{Console::Options{}};
};

TEST_F(Writer, KeepsTheNewestAndPointsLastAtIt) {
  CheckpointWriter to = writer(2);
  EXPECT_EQ(to.last_is_saved(), std::nullopt);
  for (const int64_t step : {10, 20, 30, 40}) save(to, step);
  EXPECT_EQ(to.last_is_saved(), true);
  EXPECT_EQ(names_in(dir_.path()),
            (std::set<std::string>{"last.safetensors",
                                   "step0000030.safetensors",
                                   "step0000030.state.safetensors",
                                   "step0000040.safetensors",
                                   "step0000040.state.safetensors"}));
  EXPECT_EQ(read_text(dir_ / "last.safetensors"), read_text(dir_ / "step0000040.safetensors"));
}

TEST_F(Writer, BestSurvivesWhateverGoes) {
  CheckpointWriter to = writer(1);
  save(to, run_, 10, {.best = true, .checkpoint = true});
  const std::string best = read_text(dir_ / "step0000010.safetensors");
  const TinyRun later(5);
  for (const int64_t step : {20, 30}) save(to, later, step);
  EXPECT_THAT(steps_in(dir_.path()), ElementsAre(30));
  EXPECT_EQ(read_text(dir_ / "best.safetensors"), best);
}

TEST_F(Writer, FilesSayWhetherTheyHoldTheAverage) {
  CheckpointWriter to = writer();
  save(to, run_, 10, {.average = true, .best = true});
  const auto recorded = [&](const char* name) {
    return recorded_evaluation(read_safetensors(dir_ / name).metadata, name);
  };
  EvaluationRecord want = tiny_identity().evaluation;
  EXPECT_EQ(recorded("best.safetensors"), want);
  want.average = true;
  EXPECT_EQ(recorded("ema.safetensors"), want);
}

TEST_F(Writer, LaterOnesOfAnAbandonedContinuationGo) {
  CheckpointWriter to = writer(3);
  for (const int64_t step : {10, 20, 30, 40}) save(to, step);
  CheckpointWriter again = writer(3);
  save(again, 25);
  EXPECT_THAT(steps_in(dir_.path()), ElementsAre(25, 20));
}

TEST_F(Writer, ClearsWhatAKilledProcessLeft) {
  write_text(dir_ / ".tmp.step0000010.safetensors.77.0", "half");
  write_tiny(dir_.path(), run_, 10);
  write_tiny(dir_.path(), run_, 20);
  fs::remove(dir_ / "step0000020.safetensors");
  write_text(dir_ / "notes.txt", "mine");
  writer();
  EXPECT_EQ(names_in(dir_.path()),
            (std::set<std::string>{
                "notes.txt", "step0000010.safetensors", "step0000010.state.safetensors"}));
}

// A folder in place of the model stands in for a file that cannot be removed.
TEST_F(Writer, AModelThatCannotBeRemovedKeepsItsState) {
  CheckpointWriter to = writer(1);
  save(to, 1);
  fs::rename(dir_ / "step0000001.safetensors", dir_ / "aside");
  fs::create_directory(dir_ / "step0000001.safetensors");
  save(to, 2);
  EXPECT_TRUE(fs::exists(dir_ / "step0000001.state.safetensors"));
  fs::remove(dir_ / "step0000001.safetensors");
  fs::rename(dir_ / "aside", dir_ / "step0000001.safetensors");
  save(to, 3);
  EXPECT_THAT(steps_in(dir_.path()), ElementsAre(3));
  EXPECT_FALSE(fs::exists(dir_ / "step0000001.safetensors"));
}

TEST_F(Writer, AFullDiskCostsAWarningAndNothingElse) {
  CheckpointWriter to = writer(1);
  save(to, 10);
  const std::set<std::string> before = names_in(dir_.path());
  ::testing::internal::CaptureStderr();
  {
    const FileSizeLimit limit(512);
    save(to, 20);
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(to.last_is_saved(), false);
  EXPECT_EQ(names_in(dir_.path()), before);
  EXPECT_THAT(said,
              HasSubstr("lockstep: warning: " + (dir_ / "step0000020.safetensors").string() +
                        " of step 20 is not saved"));
  EXPECT_THAT(said, HasSubstr("\n  why: cannot write "));
  EXPECT_THAT(said, HasSubstr("File too large\n  try: check space"));
  EXPECT_THAT(said,
              HasSubstr("training goes on, the newest sound checkpoint is " +
                        (dir_ / "step0000010.safetensors").string() + "\n"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 3);
  save(to, 30);
  EXPECT_EQ(to.last_is_saved(), true);
  EXPECT_THAT(steps_in(dir_.path()), ElementsAre(30));
}

TEST_F(Writer, NoModelStaysWithoutItsState) {
  CheckpointWriter to = writer();
  fs::create_directories(dir_ / "step0000010.state.safetensors" / "in the way");
  ::testing::internal::CaptureStderr();
  save(to, 10);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("there is no checkpoint yet"));
  EXPECT_EQ(to.last_is_saved(), false);
  EXPECT_EQ(names_in(dir_.path()), (std::set<std::string>{"step0000010.state.safetensors"}));
}

TEST_F(Writer, NewestSoundPassesOverDamageByName) {
  for (const int64_t step : {10, 20, 30}) write_tiny(dir_.path(), run_, step);
  std::string flipped = read_text(dir_ / "step0000030.state.safetensors");
  flipped.back() = static_cast<char>(flipped.back() ^ 1);
  write_text(dir_ / "step0000030.state.safetensors", flipped);
  const std::string torn = read_text(dir_ / "step0000020.safetensors");
  write_text(dir_ / "step0000020.safetensors", torn.substr(0, torn.size() - 1));
  std::vector<std::string> notes;
  const auto found = newest_sound(dir_.path(), notes);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->checkpoint.record.position.steps, 10);
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_THAT(notes[0], HasSubstr("step0000030.state.safetensors as a checkpoint: its content"));
  EXPECT_THAT(notes[1], HasSubstr("step0000020.safetensors as a safetensors file: "));
}

// After the first checkpoint, SIGKILL at any moment of many saves must leave a sound checkpoint.
TEST_F(Writer, AKillAtAnyMomentLeavesASoundCheckpoint) {
  CheckpointWriter first = writer(1);
  save(first, 1);
  std::mt19937 random(1);
  int64_t newest = 1;
  for (int round = 0; round < 12; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      CheckpointWriter to = writer(1);
      for (int64_t step = newest + 1;; ++step) save(to, step);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(3000 + random() % 60000));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    std::vector<std::string> notes;
    const auto found = newest_sound(dir_.path(), notes);
    ASSERT_TRUE(found) << "round " << round;
    EXPECT_THAT(notes, ElementsAre()) << "round " << round;
    EXPECT_GE(found->checkpoint.record.position.steps, newest);
    EXPECT_NO_THROW(read_safetensors(dir_ / "last.safetensors"));
    newest = found->checkpoint.record.position.steps;
  }
  EXPECT_GT(newest, 1);
}

TEST_F(Writer, ModelsWithoutTheirStateStay) {
  write_tiny(dir_.path(), run_, 10);
  fs::remove(dir_ / "step0000010.state.safetensors");
  CheckpointWriter to = writer(1);
  for (const int64_t step : {5, 20, 30}) save(to, step);
  EXPECT_THAT(names_in(dir_.path()), ::testing::Contains("step0000010.safetensors"));
  EXPECT_THAT(steps_in(dir_.path()), ElementsAre(30));
}

TEST_F(Writer, AFolderThatMayNotBeReadForAWhileCostsOneSave) {
  const pid_t child = fork();
  if (child == 0) {
    CheckpointWriter to = writer(1);
    save(to, 10);
    if (geteuid() == 0 && (chown(dir_.path().c_str(), 65534, 65534) != 0 || seteuid(65534) != 0)) {
      _exit(3);
    }
    fs::permissions(dir_.path(), fs::perms::none);
    save(to, 20);
    if (to.last_is_saved() != false) _exit(1);
    fs::permissions(dir_.path(), fs::perms::owner_all);
    save(to, 30);
    _exit(to.last_is_saved() == true ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Makes links fail with EPERM in this process from now on, as on file systems without links.
bool forbid_links() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_symlinkat, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {.len = std::size(program), .filter = program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST_F(Writer, WithoutLinksSavesCountAndOldOnesGo) {
  constexpr int kNoFilter = 77;
  const fs::path said = dir_ / "said";
  const pid_t child = fork();
  if (child == 0) {
    if (!forbid_links() || std::freopen(said.c_str(), "w", stderr) == nullptr) _exit(kNoFilter);
    CheckpointWriter to = writer(1);
    for (const int64_t step : {10, 20, 30}) save(to, step);
    std::fflush(stderr);
    _exit(to.last_is_saved() == true ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == kNoFilter) GTEST_SKIP() << "no seccomp here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_THAT(steps_in(dir_.path()), ElementsAre(30));
  const std::string text = read_text(said);
  EXPECT_THAT(text, HasSubstr("checkpoints are saved, but last.safetensors does not lead to"));
  EXPECT_THAT(text, HasSubstr("symlink: Operation not permitted"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << text;
}

}  // namespace
}  // namespace lockstep::trainers::checkpoint_writer_test
