// Documented losses and logits of ResNet-18 and ResNet-50.
#include <algorithm>

#include <gtest/gtest.h>

#include "comm/single.h"
#include "tests/support/close.h"
#include "tests/support/documented_batch.h"
#include "tests/support/golden.h"
#include "tests/support/resnets.h"
#include "tests/support/training.h"

namespace lockstep::nn::resnet_losses_test {
namespace {

using testing::documented_images;
using testing::GoldenCase;

class ResNetLosses : public ::testing::TestWithParam<std::string> {};

// PyTorch's own losses part where rounding or the last bits of initial weights decide a ReLU:
// ResNet-18's third by 3.9 %. `spread` is how far.
TEST_P(ResNetLosses, ThreeStepsFollowPyTorch) {
  const GoldenCase golden = testing::golden_case("resnet_losses", GetParam() + "_losses");
  const auto n = static_cast<int64_t>(golden.number("n"));
  const auto pixels = static_cast<int64_t>(golden.number("pixels"));
  Mt19937 rng(42);
  const std::unique_ptr<Module> model = testing::make_resnet(
      GetParam(),
      Init{rng},
      {.classes = 10, .zero_init_residual = golden.number("zero_init_residual") != 0});
  Stream stream(Device::kCpu, 2);
  comm::SingleCommunicator single;
  testing::TrainingStep training(
      stream,
      single,
      *model,
      {.lr = static_cast<float>(golden.number("sgd/lr")),
       .momentum = static_cast<float>(golden.number("sgd/momentum")),
       .weight_decay = static_cast<float>(golden.number("sgd/weight_decay"))});
  const Tensor images = documented_images({n, 3, pixels, pixels});
  const Tensor labels = testing::documented_labels(n);
  const Tensor losses = golden.tensor("losses");
  const Tensor spread = golden.tensor("spread");
  for (size_t step = 0; step < losses.span<float>().size(); ++step) {
    const float want = losses.span<float>()[step];
    const float relative = std::max(2e-3F, 1.5F * spread.span<float>()[step]);
    EXPECT_NEAR(training.run(images, labels, Shards::cut(n, 2, 1)), want, relative * want)
        << "step " << step;
  }
}
INSTANTIATE_TEST_SUITE_P(PyTorch, ResNetLosses, ::testing::Values("resnet18", "resnet50"));

TEST(ResNet50, EvaluatesAsPyTorchAfterInitialization) {
  const GoldenCase golden = testing::golden_case("resnet_losses", "resnet50_eval");
  const auto pixels = static_cast<int64_t>(golden.number("pixels"));
  Mt19937 rng(42);
  ResNet model(Init{rng}, 50, {});
  model.train(false);
  Stream stream(Device::kCpu, 1);
  const Var x(documented_images({1, 3, pixels, pixels}),
              make_batch(stream, Shards::single(1), false));
  const Tensor got = model.forward(x).value();
  const std::span<const float> logits = got.span<float>();
  EXPECT_TRUE(testing::close(logits, golden.tensor("logits").span<float>(), {.abs = 1e-3}));
  EXPECT_EQ(std::ranges::max_element(logits) - logits.begin(), 937);
}

}  // namespace
}  // namespace lockstep::nn::resnet_losses_test
