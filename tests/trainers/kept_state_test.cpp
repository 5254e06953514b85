#include "trainers/checkpoint/kept_state.h"

#include <chrono>
#include <mutex>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "comm/shared/thread_ranks.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "tests/support/temp_dir.h"
#include "tests/trainers/tiny_run.h"

namespace lockstep::trainers::kept_state_test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using testing::TempDir;
using testing::tiny_identity;
using testing::tiny_position;
using testing::TinyRun;

void ignore(const std::string&) {}

// Runs newest_kept() with each rank as the first of a separate host. Returns rank 0's result.
std::optional<SoundCheckpoint> newest_of(const std::vector<fs::path>& folders) {
  std::optional<SoundCheckpoint> found;
  std::mutex mutex;
  comm::spawn_ranks(
      static_cast<int>(folders.size()),
      [&](Communicator& ranks) {
        auto kept = newest_kept(ranks, folders[static_cast<size_t>(ranks.rank())]);
        const std::lock_guard lock(mutex);
        if (ranks.rank() == 0) found = std::move(kept);
      },
      std::chrono::seconds(20));
  return found;
}

TEST(KeptState, OneStateStaysAndNoneAfterTheRunsEnd) {
  const TempDir dir;
  const TinyRun run(1);
  Stream stream;
  StateKeeper keeper(dir / "kept", tiny_identity(), ignore);
  keeper.reserve({stream, run.model, run.optimizer});
  for (const int64_t step : {4, 5}) {
    keeper.keep({stream, run.model, run.optimizer}, tiny_position(step));
  }
  const std::vector<StoredCheckpoint> stored = list_checkpoints(dir / "kept");
  ASSERT_EQ(stored.size(), 1U);
  EXPECT_EQ(stored[0].step, 5);
  keeper.remove();
  EXPECT_FALSE(fs::exists(dir / "kept"));
}

// A rank was killed while it wrote a state.
TEST(KeptState, WhatAKilledWriteLeftIsRemoved) {
  const TempDir dir;
  {
    const StateKeeper keeper(dir / "kept", tiny_identity(), ignore);
  }
  const fs::path unfinished = dir / "kept/.tmp.step0000004.safetensors";
  write_file_atomically(unfinished, "half");
  const StateKeeper again(dir / "kept", tiny_identity(), ignore);
  EXPECT_FALSE(fs::exists(unfinished));
}

// The hosts were killed in different steps, and one of them while it was writing.
TEST(KeptState, TheNewestSoundStateOfAnyHostComesToRank0) {
  const TempDir dir;
  std::vector<fs::path> folders;
  Stream stream;
  for (const int64_t host : {0, 1, 2}) {
    folders.push_back(dir / std::to_string(host));
    const TinyRun run(static_cast<uint64_t>(host) + 1);
    StateKeeper keeper(folders.back(), tiny_identity(), ignore);
    keeper.keep({stream, run.model, run.optimizer}, tiny_position(10 + host));
  }
  const fs::path damaged = folders[2] / model_file_name(12);
  fs::resize_file(damaged, fs::file_size(damaged) - 1);
  const auto found = newest_of(folders);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->checkpoint.record.position.steps, 11);
  EXPECT_EQ(found->model_file.parent_path(), folders[0]);
  EXPECT_EQ(digest_of_row_major(found->checkpoint.model),
            digest_of_row_major(file_tensors(TinyRun(2).model.state())));
  EXPECT_FALSE(newest_of({dir / "none", dir / "neither"}));
}

TEST(KeptState, AFolderThatOthersMayEnterIsRefused) {
  const TempDir dir;
  fs::create_directory(dir / "kept");
  ::chmod((dir / "kept").c_str(), 0755);
  EXPECT_THROW(StateKeeper(dir / "kept", tiny_identity(), ignore), EnvironmentError);
}

}  // namespace
}  // namespace lockstep::trainers::kept_state_test
