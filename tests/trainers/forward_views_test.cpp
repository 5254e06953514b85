#include "engine/evaluation/forward_views.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/philox.h"
#include "kernels/elementwise/copy.h"
#include "nn/convnet.h"
#include "nn/layers.h"
#include "tests/support/close.h"
#include "tests/support/doubles.h"
#include "tests/support/golden.h"

namespace lockstep::trainers::forward_views_test {
namespace {

using testing::close;
using testing::doubles;

Tensor some_images(const Shape& shape) {
  Tensor images = Tensor::empty(shape, Dtype::kU8);
  PhiloxStream random(1, RandomPurpose::kSynthetic, 0, 0);
  for (uint8_t& byte : images.span<uint8_t>()) byte = static_cast<uint8_t>(random.below(256));
  return images;
}

kernels::NormalizeImageParams normalization(const Tensor& images) {
  const auto channels = static_cast<size_t>(images.shape()[1]);
  return {.mean = std::vector(channels, 0.25F), .std = std::vector(channels, 0.5F)};
}

struct Network {
  Tensor forward(TestViews views, const Tensor& images) {
    const int64_t count = images.shape()[0];
    const Tensor indices = Tensor::zeros({count}, Dtype::kI64);
    const auto batch = nn::make_batch(stream, Shards::single(count), false);
    return forward_views(model, {normalization(images), views}, {images, indices, batch}).value();
  }

  nn::Module& model;
  Stream stream = Stream();
};

// Moves the gray images down and to the right, and then mirrors them. A pixel from beyond an edge
// is the one reflected at that edge.
Tensor moved(const Tensor& images, int64_t down, int64_t right, bool flip) {
  const Shape& shape = images.shape();
  const int64_t height = shape[2], width = shape[3];
  Tensor out = Tensor::empty(shape, Dtype::kU8);
  const auto inside = [](int64_t i, int64_t size) {
    return i < 0 ? -i : (i == size ? size - 2 : i);
  };
  for (int64_t n = 0; n < shape[0]; ++n) {
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        const int64_t from_y = inside(y - down, height);
        const int64_t from_x = inside((flip ? width - 1 - x : x) - right, width);
        out.data<uint8_t>()[(n * height + y) * width + x] =
            images.data<uint8_t>()[(n * height + from_y) * width + from_x];
      }
    }
  }
  return out;
}

constexpr testing::Tolerance kTolerance = {1e-6, 1e-6};

class ForwardViews : public ::testing::Test {
 protected:
  ForwardViews() : rng_(1), model_(nn::Init{rng_}) { model_.train(false); }

  std::vector<double> one(const Tensor& images) {
    return doubles(network_.forward(TestViews::kOne, images));
  }
  // (logits(v) + logits(v mirrored)) / 2, like infer_mirror in airbench94.
  std::vector<double> both(int64_t down, int64_t right) {
    std::vector<double> sum = one(moved(images_, down, right, false));
    const std::vector<double> mirrored = one(moved(images_, down, right, true));
    for (size_t i = 0; i < sum.size(); ++i) sum[i] = (sum[i] + mirrored[i]) / 2;
    return sum;
  }

  Mt19937 rng_;
  nn::ConvNet model_;
  Network network_{model_};
  const Tensor images_ = some_images({5, 1, 28, 28});
};

TEST_F(ForwardViews, OneIsTheNetworksAnswer) {
  const auto batch = nn::make_batch(network_.stream, Shards::single(5), false);
  const Var want = model_.forward(nn::normalize_image(images_, batch, normalization(images_)));
  EXPECT_TRUE(testing::same_bits(network_.forward(TestViews::kOne, images_), want.value()));
}

TEST_F(ForwardViews, FlipIsTheMeanOfTheImageAndItsMirrorImage) {
  const Tensor got = network_.forward(TestViews::kFlip, images_);
  EXPECT_TRUE(close(got.span<const float>(), both(0, 0), kTolerance));
}

TEST_F(ForwardViews, ShiftIsTheMeanOfMovedImagesToo) {
  std::vector<double> want = both(0, 0);
  const std::vector<double> down_right = both(1, 1), up_left = both(-1, -1);
  for (size_t i = 0; i < want.size(); ++i) want[i] = want[i] / 2 + (down_right[i] + up_left[i]) / 4;
  const Tensor got = network_.forward(TestViews::kShift, images_);
  EXPECT_TRUE(close(got.span<const float>(), want, kTolerance));
  EXPECT_FALSE(close(got.span<const float>(), both(0, 0), kTolerance)) << "it sees no difference";
}

// A network whose logits have 16 bits.
class Rounding : public nn::Module {
 public:
  explicit Rounding(nn::Module& inner) : inner_(inner) {}
  Var forward(const Var& x) override { return nn::cast(inner_.forward(x), Dtype::kF16); }

 private:
  nn::Module& inner_;
};

TEST_F(ForwardViews, MeansOfSixteenBitLogitsAreFormedInF32) {
  Rounding rounding(model_);
  Network network{rounding};
  EXPECT_EQ(network.forward(TestViews::kOne, images_).dtype(), Dtype::kF16);
  const Tensor got = network.forward(TestViews::kShift, images_);
  ASSERT_EQ(got.dtype(), Dtype::kF32);
  const Tensor want = network_.forward(TestViews::kShift, images_);
  EXPECT_TRUE(close(got.span<const float>(), doubles(want), {0x1p-11, 0x1p-11}));
  Tensor rounded = Tensor::empty(got.shape(), Dtype::kF16);
  Tensor again = Tensor::empty(got.shape(), Dtype::kF32);
  kernels::cast(network.stream, got, rounded);
  kernels::cast(network.stream, rounded, again);
  EXPECT_FALSE(testing::same_bits(got, again)) << "the mean was rounded to 16 bits";
}

// The network is linear, so only the order of the views can cause rounding errors.
TEST(ForwardViewsOfALinearNetwork, AreThoseOfPyTorch) {
  const testing::GoldenCase golden = testing::golden_case("image_views", "logits");
  Mt19937 rng(1);
  nn::Linear model(nn::Init{rng}, Shape{2, 5, 6}, 4);
  Network network{model};
  std::vector<nn::StateEntry> state = model.state();
  kernels::copy(network.stream, golden.tensor("weight"), state[0].tensor);
  kernels::copy(network.stream, golden.tensor("bias"), state[1].tensor);
  for (const auto& [views, name] : kTestViewNames) {
    const Tensor got = network.forward(views, golden.tensor("images"));
    const Tensor want = golden.tensor(std::string(name));
    EXPECT_TRUE(close(got.span<const float>(), doubles(want), testing::f32_sum(60))) << name;
  }
}

}  // namespace
}  // namespace lockstep::trainers::forward_views_test
