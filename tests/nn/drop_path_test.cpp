// Residual blocks that leave out their branches.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "nn/cifar_resnet.h"
#include "nn/residual_block.h"
#include "nn/resnet.h"
#include "tests/support/close.h"
#include "tests/support/golden.h"
#include "tests/support/random_tensor.h"

namespace lockstep::nn::drop_path_test {
namespace {

using testing::random_tensor;
using testing::same_bits;

constexpr int64_t kImages = 4;

TEST(DropPath, RatesOfTheBlocksAreTimms) {
  for (const auto& golden : testing::golden_cases("drop_path")) {
    SCOPED_TRACE(golden.name());
    const Tensor rates = golden.tensor("rates");
    const int64_t blocks = rates.numel();
    for (int64_t i = 0; i < blocks; ++i) {
      const DropPath drop = drop_path_of(golden.number("last"), i, blocks);
      EXPECT_FLOAT_EQ(static_cast<float>(drop.p), rates.data<float>()[i]) << i;
      EXPECT_EQ(drop.block, i);
    }
  }
  EXPECT_EQ(drop_path_of(0.5, 0, 1).p, 0);
}

struct Pass {
  Tensor logits;
  std::vector<NamedParameter> parameters;  // with their gradients
};

Pass pass(Module& model, const Tensor& images, int64_t first_number = 0) {
  Stream stream;
  Tensor numbers = Tensor::empty({kImages}, Dtype::kI64);
  for (int64_t n = 0; n < kImages; ++n) numbers.data<int64_t>()[n] = first_number + n;
  const auto batch = make_batch(
      stream, Shards::single(kImages), true, {}, nullptr, {.seed = 5, .images = numbers});
  const Var logits = model.forward(Var(images, batch));
  softmax_cross_entropy(logits, Tensor::zeros({kImages}, Dtype::kI32)).loss.backward();
  return {logits.value(), model.named_parameters()};
}

bool is_zero(const Tensor& tensor) {
  for (const float value : tensor.span<const float>()) {
    if (value != 0) return false;
  }
  return true;
}

// At 1 the last block is its shortcut, whatever its branch is, and the first one never is.
TEST(DropPath, TheLastBlockOfANetworkIsLeftOutMostOften) {
  const Tensor images = random_tensor({kImages, 3, 32, 32}, 1);
  Mt19937 rng(1);
  ResNet resnet(Init{rng}, 18, {.classes = 3, .cifar_stem = true, .drop_path = 1});
  CifarResNet small(Init{rng}, 20, 3, 1);
  const std::vector<std::pair<Module*, std::vector<std::string>>> cases = {
      {&resnet, {"layer1.0.", "layer4.1."}}, {&small, {"layer1.0.", "layer3.2."}}};
  for (const auto& [model, blocks] : cases) {
    const Pass done = pass(*model, images);
    int of_first = 0, of_last = 0;
    for (const NamedParameter& parameter : done.parameters) {
      if (parameter.name.starts_with(blocks[0])) {
        EXPECT_FALSE(is_zero(parameter.var.grad())) << parameter.name;
        ++of_first;
      }
      if (parameter.name.starts_with(blocks[1])) {
        EXPECT_TRUE(is_zero(parameter.var.grad())) << parameter.name;
        ++of_last;
      }
    }
    EXPECT_GT(of_first, 0);
    EXPECT_GT(of_last, 0);
  }
}

TEST(DropPath, IsDrawnByTheImagesNumbersAndOnlyWhileTraining) {
  const Tensor images = random_tensor({kImages, 3, 32, 32}, 1);
  const auto network = [](double drop_path) {
    Mt19937 rng(1);
    return std::make_unique<CifarResNet>(Init{rng}, 20, 3, drop_path);
  };
  const auto dropping = network(0.5);
  const auto plain = network(0);
  const Tensor logits = pass(*dropping, images).logits;
  EXPECT_TRUE(same_bits(pass(*network(0.5), images).logits, logits));
  EXPECT_FALSE(same_bits(pass(*network(0.5), images, 100).logits, logits));
  EXPECT_FALSE(same_bits(pass(*plain, images).logits, logits));
  const auto evaluated = [&](Module& model) {
    model.train(false);
    Stream stream;
    const auto batch = make_batch(stream, Shards::single(kImages), false);
    return model.forward(Var(images, batch)).value();
  };
  EXPECT_TRUE(same_bits(evaluated(*network(0.5)), evaluated(*network(0))));
}

// Where no branch is left out, the ops of a training step are others, and say the same.
TEST(DropPath, ARateNearZeroIsNearlyThePlainNetwork) {
  const Tensor images = random_tensor({kImages, 3, 32, 32}, 1);
  Mt19937 rng(1);
  Mt19937 again(1);
  ResNet dropping(Init{rng}, 50, {.classes = 3, .cifar_stem = true, .drop_path = 1e-12});
  ResNet plain(Init{again}, 50, {.classes = 3, .cifar_stem = true});
  const Pass got = pass(dropping, images);
  const Pass want = pass(plain, images);
  EXPECT_TRUE(testing::close(
      got.logits.span<const float>(), want.logits.span<const float>(), {1e-4, 1e-5}));
  for (size_t i = 0; i < got.parameters.size(); ++i) {
    const Tensor gradient = want.parameters[i].var.grad();
    EXPECT_TRUE(testing::close(got.parameters[i].var.grad().span<const float>(),
                               gradient.span<const float>(),
                               {1e-2, 1e-4}))
        << got.parameters[i].name;
  }
}

}  // namespace
}  // namespace lockstep::nn::drop_path_test
