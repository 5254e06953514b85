#include <gtest/gtest.h>

#include "core/digest.h"
#include "tests/support/temp_dir.h"
#include "tests/trainers/tiny_run.h"
#include "trainers/checkpoint/save_files.h"

namespace lockstep::trainers::snapshot_test {
namespace {

using testing::TempDir;
using testing::tiny_identity;
using testing::tiny_position;
using testing::TinyRun;

// Three threads copy tensors of many sizes, one of them of 16 MiB with another element order in
// files.
TEST(Snapshots, AnyNumberOfThreadsCopyTheStateAsItIs) {
  const TinyRun run(1);
  Mt19937 rng(2);
  nn::Conv2d large(nn::Init{rng}, {.in_channels = 128, .out_channels = 256, .kernel = 11});
  for (const int threads : {1, 3}) {
    Stream stream(Device::kCpu, threads);
    Snapshot snapshot;
    take_snapshot({stream, large, run.optimizer}, snapshot);
    const std::byte* const memory = snapshot.memory.bytes();
    for (const nn::Module* model :
         {static_cast<const nn::Module*>(&run.model), static_cast<const nn::Module*>(&large)}) {
      take_snapshot({stream, *model, run.optimizer}, snapshot);
      EXPECT_EQ(snapshot.memory.bytes(), memory);
      for (int times = 0; times < 2; ++times) put_in_file_order(snapshot);
      EXPECT_EQ(digest_of_row_major(snapshot.model),
                digest_of_row_major(file_tensors(model->state())));
      EXPECT_EQ(digest_of_row_major(snapshot.optimizer),
                digest_of_row_major(file_tensors(run.optimizer.state())));
    }
  }
}

TEST(Snapshots, LaterStepsDoNotReachIt) {
  const TempDir dir;
  TinyRun run(1);
  const uint64_t before = run.digest();
  Stream stream;
  RecordedSnapshot snapshot;
  take_snapshot({stream, run.model, run.optimizer}, snapshot);
  snapshot.record = {.run = tiny_identity(), .position = tiny_position(10), .model_digest = {}};
  uint64_t seed = 100;
  for (const auto& entries : {run.model.state(), run.optimizer.state()}) {
    for (const nn::StateEntry& entry : entries) TinyRun::fill(entry.tensor, ++seed);
  }
  write_snapshot(Folder(dir.path()), snapshot);
  const Checkpoint found = read_checkpoint(dir / model_file_name(10));
  EXPECT_EQ(digest_of_row_major(found.model) ^ digest_of_row_major(found.optimizer), before);
}

}  // namespace
}  // namespace lockstep::trainers::snapshot_test
