// BlurPool in 16 bits, and which convolutions get it. Its values are PyTorch's in
// resnet_gradients_test.cpp.
#include "nn/blur_pool.h"

#include <gtest/gtest.h>

#include "nn/autocast.h"
#include "tests/support/close.h"
#include "tests/support/float_types.h"
#include "tests/support/random_tensor.h"

namespace lockstep::nn::blur_pool_test {
namespace {

using testing::rounded_to;
using testing::same_bits;

Conv2dOptions half_size(int64_t channels) {
  return {.in_channels = channels, .out_channels = 8, .kernel = 1, .stride = 2, .bias = false};
}

bool is_blurred(const Conv2dOptions& options, bool asked) {
  Mt19937 rng(1);
  const auto conv = make_conv(Init{rng, Device::kDry}, options, asked);
  return dynamic_cast<const BlurPoolConv2d*>(conv.get()) != nullptr;
}

TEST(BlurPool, IsForStridesAndSixteenChannelsOrMore) {
  EXPECT_TRUE(is_blurred(half_size(16), true));
  EXPECT_FALSE(is_blurred(half_size(16), false));
  EXPECT_FALSE(is_blurred(half_size(15), true));
  Conv2dOptions whole = half_size(16);
  whole.stride = 1;
  EXPECT_FALSE(is_blurred(whole, true));
}

// The image keeps its mean inside, and loses a quarter of an edge to the zeros around it.
TEST(BlurPool, OfAConstantImage) {
  Mt19937 rng(1);
  BlurPoolConv2d layer(Init{rng}, half_size(16));
  for (const NamedParameter& parameter : layer.named_parameters()) {
    Tensor weight = parameter.var.value();
    std::ranges::fill(weight.span<float>(), 1.0F / 16);
  }
  Tensor image = Tensor::empty({1, 16, 4, 4}, Dtype::kF32);
  std::ranges::fill(image.span<float>(), 1.0F);
  Stream stream;
  const Var out = layer.forward(Var(image, make_batch(stream, Shards::single(1), false)));
  const std::vector<float> want = {0.5625F, 0.75F, 0.75F, 1};  // pixels 0 and 2 of 4
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ(out.value().span<float>()[i], want[i / 8]) << i;
}

// A blur's result is rounded before the convolution reads it, as PyTorch's is.
TEST(BlurPool, ReadsSixteenBitsWithAndWithoutAutocast) {
  for (const Dtype dtype : {Dtype::kF16, Dtype::kBF16}) {
    Mt19937 rng(1);
    BlurPoolConv2d layer(Init{rng}, half_size(16));
    Stream stream;
    add_copies(layer.named_parameters(), dtype);
    refresh_copies(stream, layer.named_parameters());
    const Tensor image = testing::random_tensor({2, 16, 6, 6}, 3);
    const auto run = [&](const Tensor& in, const Precision& precision) {
      return layer.forward(Var(in, make_batch(stream, Shards::single(2), false, precision)));
    };
    const Var narrow = run(rounded_to(dtype, image), {.images = dtype});
    EXPECT_EQ(narrow.dtype(), dtype);
    const Var cast = run(image, {.autocast = dtype});
    EXPECT_EQ(cast.dtype(), dtype);
    EXPECT_TRUE(same_bits(cast.value(), narrow.value()));
  }
}

}  // namespace
}  // namespace lockstep::nn::blur_pool_test
