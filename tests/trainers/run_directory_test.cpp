#include "trainers/report/run_directory.h"

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "core/atomic_file.h"
#include "core/error.h"
#include "tests/support/temp_dir.h"
#include "trainers/config/run_files.h"

namespace lockstep::trainers::run_directory_test {
namespace {

namespace fs = std::filesystem;
using testing::read_text;
using testing::TempDir;
using testing::write_text;

template <class ExpectedError>
std::string error_text(const fs::path& path, ExistingRun existing = ExistingRun::kRefuse) {
  try {
    const RunDirectory directory(path, existing);
  } catch (const ExpectedError& error) {
    return format_error(error);
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(RunDirectory, CreatesMissingParentsAndWritesIntoThem) {
  const TempDir dir;
  RunDirectory directory(dir / "a/b/c/", ExistingRun::kRefuse);
  EXPECT_EQ(directory.path(), dir / "a/b/c");
  EXPECT_TRUE(fs::is_directory(directory.checkpoints().path()));
  RunRecord record;
  directory.write(record);
  record.plan.seeds.run = 6;
  directory.write(record);
  EXPECT_EQ(nlohmann::json::parse(read_text(dir / "a/b/c/run.json"))["seed"], 6);
  directory.append("{\"step\":1}\n");
  directory.append("{\"step\":2}\n");
  EXPECT_EQ(read_text(dir / "a/b/c/metrics.jsonl"), "{\"step\":1}\n{\"step\":2}\n");
}

TEST(RunDirectory, RunsThatTakeOneNameAtOnceEachGetTheirOwn) {
  const TempDir dir;
  const fs::path path = dir / "runs/run";
  EXPECT_EQ(create_unused(path), path);
  EXPECT_EQ(create_unused(path), path.string() + "-2");
  write_text(path.string() + "-3", "a file");
  fs::create_symlink("nowhere", path.string() + "-4");
  EXPECT_EQ(create_unused(path), path.string() + "-5");

  std::vector<fs::path> taken(8);
  std::vector<std::thread> runs;
  for (fs::path& each : taken) runs.emplace_back([&] { each = create_unused(dir / "at/once"); });
  for (std::thread& run : runs) run.join();
  EXPECT_EQ(std::set<fs::path>(taken.begin(), taken.end()).size(), taken.size());
  EXPECT_THROW(create_unused(path.string() + "-3/below"), EnvironmentError);
}

TEST(RunDirectory, RefusesOneThatHoldsARun) {
  const TempDir dir;
  RunDirectory(dir / "run", ExistingRun::kRefuse).write({});
  const std::string text = error_text<UsageError>(dir / "run");
  EXPECT_TRUE(contains(text, "is not empty")) << text;
  EXPECT_TRUE(contains(text, "--overwrite")) << text;
}

TEST(RunDirectory, RefusesForeignFilesAndLeavesNothingBeside) {
  const TempDir dir;
  write_text(dir / "letter.txt", "dear");
  EXPECT_TRUE(contains(error_text<UsageError>(dir.path()), "is not empty"));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), {}), 1);
}

TEST(RunDirectory, ARunThatFailedBeforeItWroteIsNoObstacle) {
  const TempDir dir;
  {
    const RunDirectory first(dir / "run", ExistingRun::kRefuse);
  }
  EXPECT_EQ(error_text<Error>(dir / "run"), "no error");
}

// A start that is refused after the directory was opened must not cost the run in it.
TEST(RunDirectory, OverwriteRemovesTheRunLaterAndNothingElse) {
  const TempDir dir;
  {
    RunDirectory first(dir / "run", ExistingRun::kRefuse);
    first.write({});
    first.append("{\"step\":1}\n");
    write_text(first.checkpoints().path() / "last.safetensors", "old");
    write_text(first.checkpoints().path() / "notes.txt", "mine");
    write_text(dir / "run" / kPlansFile, "{}");
    write_text(dir / "run/letter.txt", "dear");
  }
  RunDirectory second(dir / "run", ExistingRun::kOverwrite);
  EXPECT_TRUE(fs::exists(dir / "run/run.json"));
  EXPECT_EQ(read_text(dir / "run/metrics.jsonl"), "{\"step\":1}\n");
  EXPECT_TRUE(fs::exists(second.checkpoints().path() / "last.safetensors"));
  second.remove_earlier_run();
  EXPECT_FALSE(fs::exists(dir / "run/run.json"));
  EXPECT_FALSE(fs::exists(dir / "run" / kPlansFile));
  EXPECT_EQ(read_text(dir / "run/metrics.jsonl"), "");
  EXPECT_FALSE(fs::exists(second.checkpoints().path() / "last.safetensors"));
  EXPECT_TRUE(fs::exists(second.checkpoints().path() / "notes.txt"));
  EXPECT_TRUE(fs::exists(dir / "run/letter.txt"));
  second.append("{\"step\":2}\n");
  EXPECT_EQ(read_text(dir / "run/metrics.jsonl"), "{\"step\":2}\n");
}

// A copy of such a value ends the stack.
TEST(RunDirectory, AContinuationDropsALineThatIsNestedDeeply) {
  constexpr size_t kDepth = 300'000;
  const TempDir dir;
  RunDirectory directory(dir / "run", ExistingRun::kOverwrite);
  directory.append("{\"step\":1,\"split\":" + std::string(kDepth, '[') + std::string(kDepth, ']') +
                   "}\n");
  directory.cut_metrics(1, true);
  EXPECT_EQ(read_text(dir / "run/metrics.jsonl"), "");
}

TEST(RunDirectory, AContinuationDropsWhatItWillSayAgain) {
  const TempDir dir;
  for (const int64_t numerics_step : {12, 13}) {
    RunDirectory directory(dir / "run", ExistingRun::kOverwrite);
    directory.remove_earlier_run();
    for (const int64_t step : {11, 12, 13})
      directory.append(fmt::format("{{\"step\":{}}}\n", step));
    write_text(dir / "run" / kNumericsFile, fmt::format("{{\n\"step\": {}\n}}\n", numerics_step));
    directory.cut_metrics(12);
    EXPECT_EQ(read_text(dir / "run/metrics.jsonl"), "{\"step\":11}\n{\"step\":12}\n");
    EXPECT_EQ(fs::exists(dir / "run" / kNumericsFile), numerics_step == 12);
  }
}

TEST(RunDirectory, IsHeldByOneRunAtATime) {
  const TempDir dir;
  auto first = std::make_unique<RunDirectory>(dir / "run", ExistingRun::kRefuse);
  first->write({});
  for (const ExistingRun existing : {ExistingRun::kRefuse, ExistingRun::kOverwrite}) {
    const std::string text = error_text<UsageError>(dir / "run", existing);
    EXPECT_TRUE(contains(text, "in use by another run")) << text;
    EXPECT_TRUE(contains(text, fmt::format("process {} on ", getpid()))) << text;
  }
  EXPECT_TRUE(fs::exists(dir / "run/run.json"));
  first.reset();
  EXPECT_EQ(error_text<Error>(dir / "run", ExistingRun::kOverwrite), "no error");
}

TEST(RunDirectory, AKilledRunHoldsNothing) {
  const TempDir dir;
  const pid_t child = fork();
  if (child == 0) {
    const RunDirectory directory(dir / "run", ExistingRun::kRefuse);
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(error_text<Error>(dir / "run"), "no error");
}

TEST(RunDirectory, WhatCannotBeAFolderIsTheEnvironment) {
  const TempDir dir;
  write_text(dir / "file", "x");
  EXPECT_TRUE(contains(error_text<EnvironmentError>(dir / "file"), "Not a directory"));
  EXPECT_TRUE(contains(error_text<EnvironmentError>(dir / "file/run"), "Not a directory"));
}

// Whether a user other than root may not use `path`; root may write anywhere.
bool is_denied(const fs::path& path) noexcept {
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && seteuid(65534) != 0) _exit(2);
    _exit(contains(error_text<EnvironmentError>(path), "Permission denied") ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(RunDirectory, AFolderThatMayNotBeWrittenIsTheEnvironment) {
  const TempDir dir;
  fs::permissions(dir.path(),
                  fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
  EXPECT_TRUE(is_denied(dir / "new/run"));
  for (const fs::perms others :
       {fs::perms::none, fs::perms::others_read | fs::perms::others_exec}) {
    fs::create_directory(dir / "run");
    fs::permissions(dir / "run", fs::perms::owner_read | fs::perms::owner_exec | others);
    EXPECT_TRUE(is_denied(dir / "run"));
  }
}

// Changes to another working directory for the lifetime of the object.
class WorkingDirectory {
 public:
  explicit WorkingDirectory(const fs::path& path) : old_(fs::current_path()) {
    fs::current_path(path);
  }
  WorkingDirectory(const WorkingDirectory&) = delete;
  WorkingDirectory& operator=(const WorkingDirectory&) = delete;
  ~WorkingDirectory() { fs::current_path(old_); }

 private:
  fs::path old_;
};

TEST(RunDirectory, LatestPointsAtTheNewestOfTheDefaultFolder) {
  const TempDir dir;
  const WorkingDirectory here(dir.path());
  {
    const RunDirectory first("runs/first", ExistingRun::kRefuse);
    first.become_latest();
  }
  EXPECT_EQ(fs::read_symlink("runs/latest"), "first");
  {
    const RunDirectory second("./runs/second/", ExistingRun::kRefuse);
    second.become_latest();
  }
  EXPECT_EQ(fs::read_symlink("runs/latest"), "second");
  {
    const RunDirectory elsewhere("other/third", ExistingRun::kRefuse);
    elsewhere.become_latest();
  }
  EXPECT_FALSE(fs::exists(fs::symlink_status("other/latest")));
  EXPECT_EQ(std::distance(fs::directory_iterator("runs"), {}), 3);
}

TEST(RunDirectory, AFolderCalledLatestStays) {
  const TempDir dir;
  const WorkingDirectory here(dir.path());
  fs::create_directories("runs/latest/kept");
  const RunDirectory run("runs/x", ExistingRun::kRefuse);
  run.become_latest();
  EXPECT_TRUE(fs::is_directory("runs/latest/kept"));
  EXPECT_EQ(std::distance(fs::directory_iterator("runs"), {}), 2);
}

// A run whose folder is removed or replaced while the run uses it.
class DisturbedRun : public ::testing::Test {
 protected:
  DisturbedRun() {
    mine_.write({});
    mine_.append("{\"step\":1}\n");
  }
  void save(const std::string& text) {
    write_file_atomically(mine_.checkpoints(), "step0000001.safetensors", text);
  }

  const TempDir dir_;
  std::vector<std::string> said_;
  RunDirectory mine_{dir_ / "run", ExistingRun::kRefuse, [this](const std::string& warning) {
                       said_.push_back(warning);
                     }};
};

TEST_F(DisturbedRun, AnotherRunAtItsPathIsLeftAlone) {
  fs::remove_all(dir_ / "run");
  RunDirectory other(dir_ / "run", ExistingRun::kRefuse);
  write_file_atomically(other.checkpoints(), "step0000001.safetensors", "other's");
  save("mine");
  mine_.append("{\"step\":2}\n");
  EXPECT_EQ(read_text(dir_ / "run/checkpoints/step0000001.safetensors"), "other's");
  EXPECT_FALSE(fs::exists(dir_ / "run/run.json"));
  EXPECT_EQ(mine_.path(), dir_ / "run-2");
  EXPECT_EQ(read_text(dir_ / "run-2/checkpoints/step0000001.safetensors"), "mine");
  EXPECT_EQ(read_text(dir_ / "run-2/metrics.jsonl"), "{\"step\":1}\n{\"step\":2}\n");
  EXPECT_TRUE(fs::exists(dir_ / "run-2/run.json"));
  ASSERT_EQ(said_.size(), 1U);
  EXPECT_TRUE(contains(said_[0], (dir_ / "run").string() + " was removed: this run goes on in "))
      << said_[0];
}

TEST_F(DisturbedRun, ARemovedFolderIsMadeAgain) {
  fs::remove_all(dir_ / "run");
  save("mine");
  EXPECT_EQ(mine_.path(), dir_ / "run");
  EXPECT_EQ(read_text(dir_ / "run/checkpoints/step0000001.safetensors"), "mine");
  EXPECT_TRUE(contains(error_text<UsageError>(dir_ / "run"), "in use by another run"));
}

TEST_F(DisturbedRun, AMovedFolderIsFollowed) {
  fs::rename(dir_ / "run", dir_ / "moved");
  RunDirectory other(dir_ / "run", ExistingRun::kRefuse);
  save("mine");
  save("mine again");
  EXPECT_EQ(read_text(dir_ / "moved/checkpoints/step0000001.safetensors"), "mine again");
  EXPECT_FALSE(fs::exists(dir_ / "run/checkpoints/step0000001.safetensors"));
  ASSERT_EQ(said_.size(), 1U);
  EXPECT_TRUE(contains(said_[0], "this run goes on in " + (dir_ / "moved").string())) << said_[0];
}

TEST_F(DisturbedRun, ALockThatWasRemovedIsTakenAgain) {
  fs::remove(dir_ / "run/.lock");
  save("mine");
  EXPECT_TRUE(contains(error_text<UsageError>(dir_ / "run", ExistingRun::kContinue), "in use"));
  fs::remove(dir_ / "run/.lock");
  RunDirectory other(dir_ / "run", ExistingRun::kContinue);
  save("mine again");
  EXPECT_EQ(read_text(dir_ / "run/checkpoints/step0000001.safetensors"), "mine");
  EXPECT_EQ(read_text(dir_ / "run-2/checkpoints/step0000001.safetensors"), "mine again");
}

TEST_F(DisturbedRun, RemovedCheckpointsGetANewFolder) {
  fs::remove_all(dir_ / "run/checkpoints");
  save("mine");
  EXPECT_EQ(read_text(dir_ / "run/checkpoints/step0000001.safetensors"), "mine");
  ASSERT_EQ(said_.size(), 1U);
  EXPECT_TRUE(contains(said_[0], "checkpoints was removed or replaced")) << said_[0];
}

TEST(UnfinishedFiles, WhatAKilledRunLeftUnfinishedIsRemoved) {
  const TempDir dir;
  {
    const RunDirectory killed(dir / "run", ExistingRun::kRefuse);
  }
  for (const char* name : {".tmp.run.json.Xy12ab", ".tmp.probe"}) {
    write_text(dir / "run" / name, "half");
  }
  const RunDirectory next(dir / "run", ExistingRun::kContinue);
  EXPECT_FALSE(fs::exists(dir / "run/.tmp.run.json.Xy12ab"));
  EXPECT_FALSE(fs::exists(dir / "run/.tmp.probe"));
}

TEST_F(DisturbedRun, RemovedLinesComeBack) {
  fs::remove(dir_ / "run/metrics.jsonl");
  mine_.append("{\"step\":2}\n");
  EXPECT_EQ(read_text(dir_ / "run/metrics.jsonl"), "{\"step\":1}\n{\"step\":2}\n");
}

}  // namespace
}  // namespace lockstep::trainers::run_directory_test
