// airbench's networks against PyTorch: names, shapes, initial weights of the same seed, logits and
// gradients, whitening and steps after it.
#include "nn/airbench.h"

#include <gtest/gtest.h>

#include "comm/single.h"
#include "nn/functional.h"
#include "tests/support/close.h"
#include "tests/support/documented_batch.h"
#include "tests/support/fingerprint.h"
#include "tests/support/golden.h"
#include "tests/support/network_gradients.h"
#include "tests/support/sha256.h"
#include "tests/support/state_lines.h"
#include "tests/support/training.h"

namespace lockstep::nn::airbench_test {
namespace {

using testing::GoldenCase;

std::unique_ptr<Module> make(const GoldenCase& golden, const Init& init) {
  return std::make_unique<Airbench>(init,
                                    airbench_options(static_cast<int>(golden.number("accuracy"))));
}

class AirbenchNetworks : public ::testing::TestWithParam<std::string> {};

TEST_P(AirbenchNetworks, NamesShapesAndInitialWeightsAreTheirs) {
  const GoldenCase golden = testing::golden_case("airbench_init", GetParam());
  Mt19937 rng(42);
  const auto model = make(golden, Init{rng});
  EXPECT_EQ(testing::sha256(testing::state_lines(*model)), golden.text("shape_sha256"));
  EXPECT_EQ(static_cast<double>(model->state().size()), golden.number("entries"));
  EXPECT_EQ(static_cast<double>(model->parameter_count()), golden.number("parameters"));

  const std::vector<NamedParameter> parameters = model->named_parameters();
  const Tensor projections = golden.tensor("projections");
  ASSERT_EQ(projections.shape()[0], std::ssize(parameters));
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor value = to_row_major(parameters[i].var.value());
    const testing::Fingerprint got = testing::fingerprint(value.span<float>());
    EXPECT_LE(got.distance(projections.slice(static_cast<int64_t>(i), 1).span<float>()),
              1e-7 * got.norm)
        << parameters[i].name;
  }
  const std::vector<NamedParameter> frozen = model->frozen_parameters();
  ASSERT_GT(frozen.size(), 1U);
  ASSERT_EQ(frozen.front().name, "0.weight");
  EXPECT_TRUE(testing::same_bits(frozen.front().var.value(), golden.tensor("filters")));
  for (const NamedParameter& gain : std::span(frozen).subspan(1)) {
    EXPECT_TRUE(gain.name.ends_with(".weight")) << gain.name;
    // An extreme of the values would leave out a NaN.
    for (const float value : gain.var.value().span<float>()) EXPECT_EQ(value, 1) << gain.name;
  }
}
INSTANTIATE_TEST_SUITE_P(PyTorch,
                         AirbenchNetworks,
                         ::testing::Values("airbench94", "airbench95", "airbench96"),
                         [](const auto& run) { return run.param; });

class AirbenchGradients : public ::testing::TestWithParam<std::string> {};

TEST_P(AirbenchGradients, AndLogitsAreTheirs) {
  testing::NetworkGradients network("airbench_gradients", GetParam(), make);
  network.expect_pytorchs();
}
INSTANTIATE_TEST_SUITE_P(PyTorch,
                         AirbenchGradients,
                         ::testing::Values("airbench94", "airbench96"),
                         [](const auto& run) { return run.param; });

// Bytes that look random, as in tools/golden/airbench.py.
Tensor documented_bytes(const Shape& shape) {
  Tensor row_major = Tensor::empty(shape, Dtype::kU8);
  for (int64_t k = 0; k < row_major.numel(); ++k) {
    const auto mixed = [](uint64_t draw) {
      return (draw * 1103515245 + 12345) % (uint64_t{1} << 31);
    };
    const uint64_t once = mixed(static_cast<uint64_t>(k));
    row_major.data<uint8_t>()[k] = static_cast<uint8_t>(mixed(once ^ once >> 15) >> 23);
  }
  return from_row_major(row_major);
}

TEST(Airbench94, ThreeStepsBehindTheWhiteningFollowPyTorch) {
  const GoldenCase golden = testing::golden_case("airbench_steps", "airbench94");
  kernels::NormalizeImageParams normalize;
  for (int c = 0; c < 3; ++c) {
    const std::string place = "/" + std::to_string(c);
    normalize.mean.push_back(static_cast<float>(golden.number("mean" + place)));
    normalize.std.push_back(static_cast<float>(golden.number("std" + place)));
  }
  const auto n = static_cast<int64_t>(golden.number("n"));
  const Tensor bytes = documented_bytes({n, 3, 32, 32});
  Mt19937 rng(42);
  Airbench model(Init{rng}, airbench_options(94));
  fit_whitening(model, normalize, [&] { return bytes; });
  const Tensor filters = model.frozen_parameters().front().var.value();
  EXPECT_TRUE(
      testing::close(filters.span<float>(), golden.tensor("filters").span<float>(), {.abs = 1e-6}));

  Stream stream(Device::kCpu, 2);
  const Shards shards = Shards::cut(n, 2, 1);
  Tensor images = Tensor::empty(bytes.shape(), Dtype::kF32);
  kernels::normalize_image(stream, shards, bytes, normalize, images);
  const Tensor labels = testing::documented_labels(n);
  comm::SingleCommunicator single;
  testing::TrainingStep training(stream,
                                 single,
                                 model,
                                 {.lr = static_cast<float>(golden.number("sgd/lr")),
                                  .momentum = static_cast<float>(golden.number("sgd/momentum")),
                                  .nesterov = golden.number("sgd/nesterov") != 0});
  const Tensor losses = golden.tensor("losses");
  for (size_t step = 0; step < losses.span<float>().size(); ++step) {
    const float want = losses.span<float>()[step];
    EXPECT_NEAR(training.run(images, labels, shards), want, 1e-4F * want) << "step " << step;
    if (step > 0) continue;
    for (const StateEntry& entry : model.state()) {
      if (entry.is_parameter || entry.tensor.dtype() != Dtype::kF32) continue;
      EXPECT_TRUE(testing::close(entry.tensor.span<float>(),
                                 golden.tensor(entry.name).span<float>(),
                                 {.rel = 1e-4, .abs = 1e-5}))
          << entry.name;
    }
  }
  model.train(false);
  const Var x(images, make_batch(stream, Shards::single(n), false));
  EXPECT_TRUE(testing::close(model.forward(x).value().span<float>(),
                             golden.tensor("eval_logits").span<float>(),
                             {.rel = 1e-3, .abs = 1e-3}));
  const Tensor after = model.frozen_parameters().front().var.value();
  EXPECT_TRUE(testing::same_bits(after, filters));
}

}  // namespace
}  // namespace lockstep::nn::airbench_test
