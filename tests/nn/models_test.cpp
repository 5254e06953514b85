// ConvNet and Toy_Net against PyTorch: names, initial weights, losses and gradients.
#include <memory>

#include <gtest/gtest.h>

#include "comm/single.h"
#include "core/error.h"
#include "nn/convnet.h"
#include "nn/layers.h"
#include "tests/support/close.h"
#include "tests/support/documented_batch.h"
#include "tests/support/golden.h"
#include "tests/support/sha256.h"
#include "tests/support/state_lines.h"
#include "tests/support/training.h"

namespace lockstep::nn::models_test {
namespace {

using testing::close;
using testing::documented_images;
using testing::documented_labels;
using testing::GoldenCase;
using testing::sha256;
using testing::TrainingStep;

std::unique_ptr<Module> make(const std::string& name, Mt19937& rng) {
  if (name == "ConvNet") return std::make_unique<ConvNet>(Init{rng});
  return std::make_unique<ToyNet>(Init{rng});
}

class Models : public ::testing::TestWithParam<std::string> {
 protected:
  Models()
      : golden_(testing::golden_case("models", GetParam())),
        rng_(42),
        model_(make(golden_.text("model"), rng_)) {}

  GoldenCase golden_;
  Mt19937 rng_;
  std::unique_ptr<Module> model_;
};

TEST_P(Models, NamesAndShapesArePyTorchs) {
  EXPECT_EQ(sha256(testing::state_lines(*model_)), golden_.text("shape_sha256"));
}

TEST_P(Models, InitialWeightsArePyTorchsBitForBit) {
  std::string bytes;
  for (const Var& parameter : model_->parameters()) {
    const Tensor row_major = to_row_major(parameter.value());
    bytes.append(reinterpret_cast<const char*>(row_major.bytes()), row_major.nbytes());
  }
  EXPECT_EQ(sha256(bytes), golden_.text("param_sha256"));
}

kernels::SgdParams sgd_params(const GoldenCase& golden) {
  kernels::SgdParams params{.lr = static_cast<float>(golden.number("sgd/lr"))};
  if (golden.text("model") == "Toy_Net") {
    params.momentum = static_cast<float>(golden.number("sgd/momentum"));
    params.nesterov = golden.number("sgd/nesterov") != 0;
  }
  return params;
}

// One group sees the whole batch, so PyTorch's numbers hold however the batch is cut.
TEST_P(Models, FiveStepsFollowPyTorch) {
  const auto n = static_cast<int64_t>(golden_.number("n"));
  const auto divisor = static_cast<int64_t>(golden_.number("loss_divisor"));
  // Toy_Net multiplies rounding differences: PyTorch's own backends differ by 7e-3 from step 2 on.
  const double tolerance = golden_.number("loss_rtol");
  const Tensor want = golden_.tensor("losses");
  Stream stream(Device::kCpu, 2);
  comm::SingleCommunicator single;

  for (const int64_t shards : {1, 4}) {
    Mt19937 rng(42);
    const std::unique_ptr<Module> model = make(golden_.text("model"), rng);
    TrainingStep training(stream, single, *model, sgd_params(golden_));
    Shards cut = Shards::cut(n, shards, 1);
    cut.step_images = n * divisor;
    for (int64_t step = 0; step < want.numel(); ++step) {
      const double allowed = step == 0 ? 1e-4 : tolerance;
      const float loss = training.run(documented_images({n, 1, 28, 28}), documented_labels(n), cut);
      const float expected = want.data<float>()[step];
      EXPECT_NEAR(loss * static_cast<float>(divisor), expected, allowed * expected)
          << "step " << step << ", " << shards << " shards";
    }
    if (tolerance > 1e-3) continue;  // logits drift with the losses
    model->train(false);
    const Var x(documented_images({4, 1, 28, 28}), make_batch(stream, Shards::single(4), false));
    EXPECT_TRUE(close(model->forward(x).value().span<float>(),
                      golden_.tensor("eval_logits").span<float>(),
                      {.rel = 1e-3, .abs = 1e-3}));
  }
}

INSTANTIATE_TEST_SUITE_P(PyTorch,
                         Models,
                         ::testing::Values("convnet", "convnet_lr_0p01", "toy_net"));

TEST(ConvNet, FirstGradientsArePyTorchs) {
  const GoldenCase golden = testing::golden_cases("models").front();
  ASSERT_EQ(golden.name(), "convnet");
  Mt19937 rng(42);
  ConvNet model(Init{rng});
  Stream stream(Device::kCpu, 2);
  comm::SingleCommunicator single;
  TrainingStep training(stream, single, model, {.lr = 1e-4F});
  for (const int64_t shards : {1, 2, 8}) {
    training.gradients(
        documented_images({32, 1, 28, 28}), documented_labels(32), Shards::cut(32, shards, 1));
    const std::vector<StateEntry> state = model.state();
    const std::vector<Var> parameters = model.parameters();
    size_t next = 0;
    for (const StateEntry& entry : state) {
      if (!entry.is_parameter) continue;
      // Biases before a batch norm have no gradient but rounding noise.
      EXPECT_TRUE(close(to_row_major(parameters[next++].grad()).span<float>(),
                        to_row_major(golden.tensor("grad." + entry.name)).span<float>(),
                        {.rel = 1e-4, .abs = 5e-6}))
          << entry.name << ", " << shards << " shards";
    }
  }
}

// PyTorch's columns, by channel, would meet pixels that are in memory by row: wrong numbers.
TEST(Linear, ImagesWantAWeightInTheirOrder) {
  Mt19937 rng(42);
  Linear features(Init{rng}, 12, 3);
  Linear image(Init{rng}, Shape{3, 2, 2}, 3);
  Stream stream;
  const auto of = [&](const Shape& shape) {
    return Var(Tensor::zeros(shape, Dtype::kF32), make_batch(stream, Shards::single(4)));
  };
  EXPECT_THROW(features.forward(of({4, 3, 2, 2})), ShapeError);
  for (const Shape& same_in_both : {Shape{4, 12}, Shape{4, 12, 1, 1}, Shape{4, 1, 3, 4}}) {
    EXPECT_EQ(features.forward(of(same_in_both)).shape(), (Shape{4, 3}));
  }
  EXPECT_EQ(image.forward(of({4, 3, 2, 2})).shape(), (Shape{4, 3}));
}

TEST(ConvNet, DryRunDeclaresEveryOp) {
  Mt19937 rng(42);
  ConvNet model(Init{rng, Device::kDry});
  Stream stream(Device::kDry);
  const Var x(Tensor::empty({32, 1, 28, 28}, Dtype::kF32, Device::kDry),
              make_batch(stream, Shards::single(32)));
  const Tensor labels = Tensor::empty({32}, Dtype::kI32, Device::kDry);
  softmax_cross_entropy(model.forward(x), labels).loss.backward();
  int64_t flops = 0;
  for (const LedgerEntry& entry : stream.ledger()) {
    if (entry.op.starts_with("conv2d")) flops += entry.flops;
  }
  const int64_t conv1 = int64_t{2} * 32 * 16 * 28 * 28 * 25;
  const int64_t conv2 = int64_t{2} * 32 * 32 * 14 * 14 * 16 * 25;
  EXPECT_EQ(flops, 2 * conv1 + 3 * conv2);  // the input needs no gradient
}

}  // namespace
}  // namespace lockstep::nn::models_test
