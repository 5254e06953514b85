// Images that grow from an epoch to the next, on the device: what the CPU learns, and a graph for
// each size.
#include <gtest/gtest.h>

#include "tests/emulated_train/tiny_training.h"
#include "tests/emulation/runtime/fake_runtime.h"

namespace lockstep::testing::growing_images_test {
namespace {

// Corners of 6 by 6 pixels in the first epoch, then whole images.
class GrowingShapes : public TinyShapes {
 public:
  GrowingShapes() : TinyShapes(22) {}

  std::string name() const override { return "growing/tiny"; }  // neither cropped nor flipped
  data::ImageShape training_shape(int64_t epoch) const override {
    const int64_t side = epoch == 0 ? 6 : image_shape().height;
    return {.channels = 3, .height = side, .width = side};
  }
  void read_for_training(int64_t i,
                         int64_t epoch,
                         const Augmentation& /*augmentation*/,
                         std::span<uint8_t> pixels) const override {
    const data::ImageShape whole = image_shape();
    std::vector<uint8_t> image(static_cast<size_t>(whole.numel()));
    read(i, image);
    const data::ImageShape shape = training_shape(epoch);
    const auto bytes = static_cast<std::ptrdiff_t>(shape.width * shape.channels);
    for (int64_t row = 0; row < shape.height; ++row) {
      const auto from = image.begin() + row * whole.width * whole.channels;
      std::copy(from, from + bytes, pixels.begin() + row * bytes);
    }
  }
};

// Trains for three epochs; each has five whole steps and a short one.
TinyResult train_growing(Device device, bool graph) {
  emulation::reset_runtime();
  trainers::ResolvedRun run = tiny_run(device, 18);
  run.request.graph = graph;
  return train_tiny(run, make_tiny_resnet, [](Stream&) {}, 0, std::make_shared<GrowingShapes>());
}

TEST(EmulatedGrowingImages, LearnWhatTheCpuLearns) {
  emulation::set_stream_order(emulation::StreamOrder::kLazy);
  const TinyResult want = train_growing(Device::kCpu, false);
  const TinyResult got = train_growing(Device::kCuda, true);
  EXPECT_LT(distance(want.weights, got.weights), 1e-3);
  EXPECT_NEAR(got.training.final->loss, want.training.final->loss, 1e-3);
}

// The third step is recorded and begins to be repeated, in the first epoch and in the second.
TEST(EmulatedGrowingImages, AreRecordedOnceForEachSize) {
  emulation::set_stream_order(emulation::StreamOrder::kLazy);
  const TinyResult eager = train_growing(Device::kCuda, false);
  EXPECT_EQ(emulation::runtime_counters.graph_launches, 0);
  const TinyResult graphs = train_growing(Device::kCuda, true);
  EXPECT_EQ(emulation::runtime_counters.graph_launches, 3 + 3 + 5);
  expect_same_weights(graphs, eager);
}

}  // namespace
}  // namespace lockstep::testing::growing_images_test
