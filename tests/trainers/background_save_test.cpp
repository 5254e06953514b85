// Saves while training continues, on a disk whose fsync() the tests block, fail and record.
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/digest.h"
#include "engine/update/make_optimizer.h"
#include "tests/support/temp_dir.h"
#include "tests/trainers/tiny_run.h"
#include "trainers/checkpoint/checkpoint_writer.h"
#include "trainers/checkpoint/export_weights.h"

namespace lockstep::trainers::background_save_test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempDir;
using testing::tiny_identity;
using testing::tiny_position;
using testing::TinyRun;

// The simulated disk of this program.
struct Disk {
  std::atomic<bool> holds = false;  // fsync() blocks
  std::atomic<bool> fails = false;
  std::mutex mutex;
  std::vector<std::string> flushed;  // file names; for the folder, which file of step 10 exists
  fs::path watched;

  void reset(const fs::path& folder) {
    holds = fails = false;
    const std::lock_guard lock(mutex);
    flushed.clear();
    watched = folder;
  }
  void note(const fs::path& path) {
    const std::lock_guard lock(mutex);
    if (path == watched) {
      flushed.emplace_back(fs::exists(path / model_file_name(10))                  ? "a model"
                           : fs::exists(path / state_file_of(model_file_name(10))) ? "a state"
                                                                                   : "nothing");
    }
    if (path.parent_path() != watched) return;
    const std::string name = path.filename();
    flushed.push_back(name.substr(0, name.find(".safetensors")));
  }
};
Disk disk;

}  // namespace
}  // namespace lockstep::trainers::background_save_test

extern "C" int fsync(int fd) {
  using lockstep::trainers::background_save_test::disk;
  std::error_code error;
  disk.note(std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), error));
  while (disk.holds) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (disk.fails) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(syscall(SYS_fsync, fd));
}

namespace lockstep::trainers::background_save_test {
namespace {

class BackgroundSave : public ::testing::Test {
 protected:
  BackgroundSave() { disk.reset(fs::canonical(dir_.path())); }
  ~BackgroundSave() override { disk.reset({}); }

  CheckpointWriter writer() {
    return {{.folder = [this]() -> const Folder& { return folder_; }, .patience = patience_},
            tiny_identity(),
            console_};
  }
  void save(CheckpointWriter& to, int64_t step, const SavedFiles& files = {.checkpoint = true}) {
    to.save(files, {stream_, run_.model, run_.optimizer}, tiny_position(step));
  }
  void train_on() {
    for (const auto& entries : {run_.model.state(), run_.optimizer.state()}) {
      for (const nn::StateEntry& entry : entries) TinyRun::fill(entry.tensor, ++seed_);
    }
  }
  fs::path file(int64_t step) const { return folder_.path() / model_file_name(step); }

  const TempDir dir_;
  Folder folder_{dir_.path()};
  Stream stream_{Device::kCpu, 3};
  TinyRun run_{1};
  uint64_t seed_ = 100;
  std::chrono::milliseconds patience_ = std::chrono::minutes(1);
  std::string said_;
  Console console_{{.sink = [this](const std::string& line) { said_ += line + "\n"; }}};
};

TEST_F(BackgroundSave, FilesHoldTheStepsValuesWhateverTrainingDoesMeanwhile) {
  CheckpointWriter to = writer();
  to.reserve({stream_, run_.model, run_.optimizer});
  for (const int64_t step : {10, 20}) {  // the second save reuses the first one's memory
    disk.holds = true;
    const uint64_t before = run_.digest();
    save(to, step);
    train_on();
    ASSERT_NE(run_.digest(), before);
    to.advance();
    EXPECT_EQ(to.last_is_saved(), false);
    EXPECT_FALSE(fs::exists(file(step)));
    disk.holds = false;
    to.finish();
    EXPECT_EQ(to.last_is_saved(), true);
    const Checkpoint found = read_checkpoint(file(step));
    EXPECT_EQ(digest_of_row_major(found.model) ^ digest_of_row_major(found.optimizer), before);
    EXPECT_EQ(found.record.position.steps, step);
  }
}

TEST_F(BackgroundSave, ASecondOneWaitsForTheFirstAndSaysSo) {
  patience_ = std::chrono::milliseconds(20);
  CheckpointWriter to = writer();
  disk.holds = true;
  save(to, 10);
  std::thread later([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    disk.holds = false;
  });
  save(to, 20);
  later.join();
  EXPECT_NO_THROW(read_checkpoint(file(10)));
  EXPECT_EQ(said_, "note: the files of step 10 are still being saved; the run waits\n");
  to.finish();
  EXPECT_NO_THROW(read_checkpoint(file(20)));
}

TEST_F(BackgroundSave, TheModelTakesItsPlaceLast) {
  CheckpointWriter to = writer();
  TinyRun averaged(3);
  nn::Ema average(std::make_unique<nn::Sgd>(averaged.model.named_parameters(),
                                            kernels::SgdParams{.momentum = 0.9F}),
                  buffers_of(averaged.model),
                  0.5);
  for (const nn::StateEntry& entry : average.state()) TinyRun::fill(entry.tensor, ++seed_);
  to.save({.average = true, .best = true, .checkpoint = true},
          {stream_, averaged.model, average},
          tiny_position(10));
  to.finish();
  EXPECT_THAT(disk.flushed,
              ElementsAre(".tmp.ema",
                          "nothing",
                          ".tmp.best",
                          "nothing",
                          ".tmp.step0000010",
                          ".tmp.step0000010.state",
                          "a state",
                          "a model",
                          "a model"));  // now also with the link to it
  FileTensors want = file_tensors(averaged.model.state());
  EXPECT_EQ(read_weights(dir_ / "best.safetensors").metadata.at("digest").size(), 16U);
  EXPECT_EQ(digest_of_row_major(read_weights(dir_ / "best.safetensors").tensors),
            digest_of_row_major(want));
  const FileTensors state = file_tensors(average.state());
  for (auto& [name, tensor] : want) {
    if (name != "bn.num_batches_tracked") tensor = state.at(name + ".ema");
  }
  EXPECT_EQ(digest_of_row_major(read_weights(dir_ / "ema.safetensors").tensors),
            digest_of_row_major(want));
}

TEST_F(BackgroundSave, AFailureIsSaidWhenItIsKnownWithTheStepItBelongsTo) {
  CheckpointWriter to = writer();
  save(to, 10);
  to.finish();
  disk.fails = true;
  disk.holds = true;
  save(to, 20, {.best = true, .checkpoint = true});
  EXPECT_EQ(said_, "");
  disk.holds = false;
  to.finish();
  EXPECT_EQ(to.last_is_saved(), false);
  EXPECT_THAT(said_, HasSubstr("best.safetensors of step 20 is not saved\n  why: cannot write "));
  EXPECT_THAT(said_, HasSubstr("step0000020.safetensors of step 20 is not saved\n"));
  EXPECT_THAT(said_, HasSubstr("the newest sound checkpoint is " + file(10).string()));
  EXPECT_NO_THROW(read_checkpoint(file(10)));
  disk.fails = false;
  save(to, 30);
  to.finish();
  EXPECT_EQ(to.last_is_saved(), true);
}

TEST_F(BackgroundSave, TheEndOfTheWriterWaitsForTheLastSave) {
  std::thread later;
  {
    CheckpointWriter to = writer();
    disk.holds = true;
    save(to, 10);
    later = std::thread([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      disk.holds = false;
    });
  }
  EXPECT_NO_THROW(read_checkpoint(file(10)));
  later.join();
}

TEST_F(BackgroundSave, AFolderThatIsRemovedMeanwhileCostsNothing) {
  CheckpointWriter to = writer();
  const TempDir other;
  folder_ = Folder(dir_.path()).inner("checkpoints");
  disk.holds = true;
  save(to, 10, {.best = true, .checkpoint = true});
  while (fs::is_empty(folder_.path())) std::this_thread::yield();
  fs::remove_all(folder_.path());
  folder_ = Folder(other.path());
  disk.holds = false;
  to.finish();
  EXPECT_EQ(to.last_is_saved(), true);
  EXPECT_EQ(said_, "");
  EXPECT_NO_THROW(read_checkpoint(file(10)));
  EXPECT_TRUE(fs::exists(other.path() / "best.safetensors"));
}

}  // namespace
}  // namespace lockstep::trainers::background_save_test
