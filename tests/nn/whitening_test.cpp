// The whitening layer by what its filters are for, and the options of batch norm that freeze.
#include "nn/whitening.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/mt19937.h"
#include "nn/autocast.h"
#include "nn/functional.h"
#include "nn/init.h"
#include "nn/layers.h"
#include "tests/support/close.h"
#include "tests/support/random_tensor.h"

namespace lockstep::nn::whitening_test {
namespace {

using testing::random_tensor;

constexpr float kMean[] = {0.4F, 0.5F, 0.6F}, kStd[] = {0.2F, 0.25F, 0.3F};

kernels::NormalizeImageParams params() {
  return {.mean = {kMean, kMean + 3}, .std = {kStd, kStd + 3}};
}

// Neighboring pixels and channels are alike, as in photos. Row-major (N,H,W,C) in memory.
Tensor smooth_images(int64_t n, int64_t height, int64_t width) {
  Mt19937 rng(7);
  std::vector<float> noise(static_cast<size_t>(n * height * width * 3));
  rng.uniform(noise, -20, 20);
  Tensor images = Tensor::empty({n, 3, height, width}, Dtype::kU8);
  size_t at = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        const double light = 110 + 80 * std::sin(0.3 * static_cast<double>(x + i)) +
                             25 * std::cos(0.5 * static_cast<double>(y - i));
        for (int64_t c = 0; c < 3; ++c, ++at) {
          const double value = light + 5 * static_cast<double>(c) + static_cast<double>(noise[at]);
          images.data<uint8_t>()[at] = static_cast<uint8_t>(std::clamp(value, 0.0, 255.0));
        }
      }
    }
  }
  return images;
}

Var run(Module& layer, Stream& stream, const Tensor& images, bool recording = false) {
  return layer.forward(normalize_image(
      images, make_batch(stream, Shards::single(images.shape()[0]), recording), params()));
}

// Products of two outputs, mean over all pixels: eigenvalue / (eigenvalue + 5e-4) of a filter with
// itself, the opposite with the filter of the other sign, and zero of any other two.
TEST(Whitening, OutputsAreUncorrelatedAndOfOneSize) {
  Mt19937 rng(3);
  Whitening layer(Init{rng}, 3, 2);
  const Tensor images = smooth_images(6, 13, 17);
  layer.fit(images, params());
  Stream stream;
  const Tensor out = run(layer, stream, images).value();
  ASSERT_EQ(out.shape(), (Shape{6, 24, 12, 16}));
  const int64_t pixels = out.numel() / 24;
  double before = 1;
  for (int64_t i = 0; i < 24; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < pixels; ++p) {
        sum += static_cast<double>(out.data<float>()[p * 24 + i]) *
               static_cast<double>(out.data<float>()[p * 24 + j]);
      }
      const double product = sum / static_cast<double>(pixels);
      if (i == j && i < 12) {
        EXPECT_LE(product, before + 1e-4) << i;  // the largest eigenvalue comes first
        EXPECT_GT(product, 0.5) << i;
        before = product;
      } else if (j == i - 12) {
        EXPECT_LT(product, -0.5) << i;
      } else if (i != j) {
        EXPECT_NEAR(product, 0, 2e-5) << i << " " << j;
      }
    }
  }
}

TEST(Whitening, TheSecondHalfIsTheOppositeAndTheFirstHasPositiveLargestComponents) {
  Mt19937 rng(3);
  Whitening layer(Init{rng}, 3, 2);
  layer.fit(smooth_images(6, 13, 17), params());
  const Tensor filters = to_row_major(layer.frozen_parameters().front().var.value());
  const float* values = filters.data<float>();
  for (int64_t k = 0; k < 12; ++k) {
    float largest = 0;
    for (int64_t i = 0; i < 12; ++i) {
      const float value = values[k * 12 + i];
      EXPECT_EQ(values[(k + 12) * 12 + i], -value);
      if (std::abs(value) > std::abs(largest)) largest = value;
    }
    EXPECT_GT(largest, 0) << k;
  }
}

TEST(Whitening, TheBiasAloneIsTrained) {
  Mt19937 rng(3);
  Whitening layer(Init{rng}, 3, 2);
  const Tensor images = smooth_images(4, 6, 9);
  Stream stream(Device::kCpu, 2);
  EXPECT_EQ(layer.parameter_names(), std::vector<std::string>{"bias"});
  const std::vector<StateEntry> state = layer.state();
  ASSERT_EQ(state.size(), 2U);
  EXPECT_EQ(state[0].name, "weight");
  EXPECT_TRUE(state[0].is_parameter);
  for (const float value : state[1].tensor.span<float>()) EXPECT_EQ(value, 0);

  // A linear layer after it makes a loss.
  Linear head(Init{rng}, Shape{24, 5, 8}, 3);
  Tensor labels = Tensor::zeros({4}, Dtype::kI32);
  const auto loss_of = [&](const Shards& shards) {
    const Var x = normalize_image(images, make_batch(stream, shards), params());
    return softmax_cross_entropy(head.forward(layer.forward(x)), labels).loss;
  };
  loss_of(Shards::single(4)).backward();
  Var bias = layer.named_parameters().front().var;
  const Tensor whole = bias.grad();
  ASSERT_EQ(whole.shape(), (Shape{1, 24}));
  constexpr float kStep = 0.05F;
  for (int64_t k = 0; k < 24; k += 5) {
    Tensor value = bias.value();
    value.data<float>()[k] = kStep;
    const double above = *loss_of(Shards::single(4)).value().data<float>();
    value.data<float>()[k] = -kStep;
    const double below = *loss_of(Shards::single(4)).value().data<float>();
    value.data<float>()[k] = 0;
    EXPECT_NEAR((above - below) / (2 * kStep), whole.data<float>()[k], 2e-4) << k;
  }
  for (Var& parameter : std::vector<Var>{bias, head.parameters()[0], head.parameters()[1]}) {
    parameter.set_grad({});
  }
  loss_of(Shards::cut(4, 2, 1)).backward();
  ASSERT_EQ(bias.grad().shape(), (Shape{2, 24}));
  for (int64_t k = 0; k < 24; ++k) {
    EXPECT_NEAR(bias.grad().data<float>()[k] + bias.grad().data<float>()[24 + k],
                whole.data<float>()[k],
                1e-5);
  }
}

TEST(Whitening, RefusesOtherImages) {
  Mt19937 rng(3);
  Whitening layer(Init{rng}, 3, 2);
  for (const Shape& shape :
       {Shape{4, 1, 8, 8}, Shape{4, 3, 1, 8}, Shape{0, 3, 8, 8}, Shape{4, 3}}) {
    EXPECT_THROW(layer.fit(Tensor::zeros(shape, Dtype::kU8), params()), ShapeError);
  }
}

TEST(Whitening, OnlyNetworksWithSuchALayerAskForImages) {
  Mt19937 rng(3);
  Linear none(Init{rng}, 4, 3);
  fit_whitening(none, {}, []() -> Tensor {
    ADD_FAILURE() << "images";
    return {};
  });
}

TEST(BatchNormOptions, AFixedGainStaysOneAndIsNoParameter) {
  Mt19937 rng(3);
  BatchNorm norm(Init{rng}, 5, {.eps = 1e-12F, .momentum = 0.4F, .fixed_gain = true});
  EXPECT_EQ(norm.parameter_names(), std::vector<std::string>{"bias"});
  EXPECT_TRUE(norm.named_parameters().front().of_norm);
  std::vector<std::string> names;
  for (const StateEntry& entry : norm.state()) names.push_back(entry.name);
  EXPECT_THAT(names,
              ::testing::ElementsAre(
                  "weight", "bias", "running_mean", "running_var", "num_batches_tracked"));

  // A layer that trains its gain computes the same for the same input.
  BatchNorm trained(Init{rng}, 5, {.eps = 1e-12F, .momentum = 0.4F});
  Linear head(Init{rng}, Shape{5, 2, 3}, 3);
  Stream stream;
  const Tensor images = random_tensor({4, 5, 2, 3}, 5);
  Tensor labels = Tensor::zeros({4}, Dtype::kI32);
  for (BatchNorm* layer : {&norm, &trained}) {
    Var x(images, make_batch(stream, Shards::single(4)));
    softmax_cross_entropy(head.forward(layer->forward(x)), labels).loss.backward();
  }
  const auto value_of = [](const BatchNorm& layer, size_t i) { return layer.state()[i].tensor; };
  EXPECT_TRUE(testing::same_bits(value_of(norm, 2), value_of(trained, 2)));
  EXPECT_TRUE(testing::same_bits(value_of(norm, 3), value_of(trained, 3)));
  EXPECT_TRUE(testing::same_bits(norm.parameters()[0].grad(), trained.parameters()[1].grad()));
  EXPECT_FALSE(norm.frozen_parameters().front().var.grad().defined());
  // Momentum is the share of the new: 0.4 of the batch's mean beside 0.6 of 0.
  double sum = 0;
  for (int64_t i = 0; i < 24; ++i) sum += static_cast<double>(images.data<float>()[i * 5]);
  EXPECT_NEAR(*value_of(norm, 2).data<float>(), 0.4 * sum / 24, 1e-6);
}

TEST(FrozenParameters, HaveCopiesFor16Bits) {
  Mt19937 rng(3);
  Whitening layer(Init{rng}, 3, 2);
  const std::vector<NamedParameter> frozen = layer.frozen_parameters();
  add_copies(frozen, Dtype::kBF16);
  Stream stream;
  refresh_copies(stream, frozen);
  const Precision precision{.images = Dtype::kBF16};
  const Var x = normalize_image(
      smooth_images(2, 4, 4), make_batch(stream, Shards::single(2), true, precision), params());
  EXPECT_EQ(layer.forward(x).dtype(), Dtype::kBF16);
}

TEST(Dirac, HandsOnTheFirstChannels) {
  for (const Shape& shape : {Shape{5, 3, 3, 3}, Shape{2, 4, 2, 2}}) {
    Tensor weight = random_tensor(shape, 1, 2, 3);
    const Tensor before = to_row_major(weight);
    Mt19937 rng(3);
    dirac(Init{rng}, weight);
    const Tensor after = to_row_major(weight);
    const int64_t area = shape[2] * shape[3];
    const int64_t center = shape[2] / 2 * shape[3] + shape[3] / 2;
    for (int64_t i = 0; i < after.numel(); ++i) {
      const int64_t k = i / shape.stride0();
      const float want = k >= shape[1]                              ? before.data<float>()[i]
                         : i % shape.stride0() == k * area + center ? 1
                                                                    : 0;
      EXPECT_EQ(after.data<float>()[i], want) << i;
    }
  }
}

}  // namespace
}  // namespace lockstep::nn::whitening_test
