// Copies of a GPU's state, where streams run as late as they may.
#include <gtest/gtest.h>

#include "core/digest.h"
#include "core/safetensors.h"
#include "kernels/elementwise/fill.h"
#include "tests/emulated_train/tiny_training.h"
#include "tests/emulation/runtime/fake_runtime.h"
#include "tests/support/temp_dir.h"
#include "tests/trainers/tiny_run.h"
#include "trainers/checkpoint/checkpoint_file.h"
#include "trainers/checkpoint/checkpoint_writer.h"

namespace lockstep::testing::snapshot_test {
namespace {

using namespace trainers;

TEST(CudaSnapshot, IsReadOnceItIsThereAndLaterStepsComeAfterIt) {
  emulation::reset_runtime();
  emulation::set_stream_order(emulation::StreamOrder::kLazy);
  const TempDir dir;
  const Folder folder(dir.path());
  Stream stream(Device::kCuda);
  Mt19937 rng(3);
  const std::unique_ptr<nn::Module> model = make_resnet8(nn::Init{rng, Device::kCuda});
  const nn::Sgd optimizer(model->named_parameters(), {.momentum = 0.9F});
  Console console({.prints = false});
  CheckpointWriter writer(
      {.folder = [&]() -> const Folder& { return folder; }}, tiny_identity(), console);
  writer.reserve({stream, *model, optimizer});
  for (const int64_t step : {1, 2}) {
    TrainingPosition at;
    at.steps = step;
    const uint64_t before = state_digest(*model);
    writer.save({.checkpoint = true}, {stream, *model, optimizer}, at);
    for (nn::StateEntry& entry : model->state()) {
      if (entry.tensor.dtype() != Dtype::kF32) continue;
      kernels::fill(stream, static_cast<double>(step), entry.tensor);
    }
    writer.advance();
    EXPECT_LT(list_checkpoints(dir.path()).size(), static_cast<size_t>(step));
    writer.finish();
    ASSERT_EQ(writer.last_is_saved(), true);
    EXPECT_EQ(digest_of_row_major(read_safetensors(dir / model_file_name(step)).tensors), before);
    stream.synchronize();
    EXPECT_NE(state_digest(*model), before);
  }
}

}  // namespace
}  // namespace lockstep::testing::snapshot_test
