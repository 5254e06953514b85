// Residual networks against PyTorch in double: logits and every gradient with the same weights.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "kernels/tree_sum.h"
#include "nn/functional.h"
#include "tests/support/close.h"
#include "tests/support/documented_batch.h"
#include "tests/support/fingerprint.h"
#include "tests/support/golden.h"
#include "tests/support/resnets.h"

namespace lockstep::nn {
namespace {

using testing::close;
using testing::Fingerprint;
using testing::GoldenCase;

constexpr double kRelative = 1e-4;

Tensor uniform(Mt19937& rng, const Shape& shape, double bound) {
  Tensor row_major = Tensor::empty(shape, Dtype::kF32);
  rng.uniform(row_major.span<float>(), static_cast<float>(-bound), static_cast<float>(bound));
  return from_row_major(row_major);
}

Tensor norm_weight(Mt19937& rng, const Shape& shape) {
  Tensor weight = Tensor::empty(shape, Dtype::kF32);
  rng.uniform(weight.span<float>(), 0.1F, 0.3F);
  return weight;
}

// Away from zero, so that rounding decides few ReLUs.
Tensor norm_bias(Mt19937& rng, const Shape& shape) {
  Tensor bias = uniform(rng, shape, 0.3F);
  for (float& value : bias.span<float>()) value += std::copysign(0.3F, value);
  return bias;
}

Tensor draw(Mt19937& rng, const std::string& name, const Shape& shape) {
  if (shape.rank() > 1) {
    return uniform(rng, shape, std::sqrt(6 / static_cast<double>(shape.stride0())));
  }
  if (name.starts_with("fc.") || name.starts_with("linear.")) return uniform(rng, shape, 0.1F);
  return name.ends_with("weight") ? norm_weight(rng, shape) : norm_bias(rng, shape);
}

// The weights of tools/golden/resnets.py, bit for bit.
void fill_parameters(const Module& model, Mt19937& rng) {
  for (const NamedParameter& parameter : model.named_parameters()) {
    Tensor value = parameter.var.value();
    std::ranges::copy(draw(rng, parameter.name, value.shape()).span<float>(), value.data<float>());
  }
}

class ResNetGradients : public ::testing::TestWithParam<std::string> {
 protected:
  ResNetGradients() {
    Mt19937 unused(0);
    const auto classes = static_cast<int64_t>(golden_.number("classes"));
    model_ = testing::make_resnet(GetParam(), Init{unused}, {.classes = classes});
    Mt19937 rng(static_cast<uint64_t>(golden_.number("seed")));
    fill_parameters(*model_, rng);
    const auto pixels = static_cast<int64_t>(golden_.number("pixels"));
    images_ = uniform(rng, {static_cast<int64_t>(golden_.number("n")), 3, pixels, pixels}, 1);
  }

  // Each gradient is looked at when it is ready, then dropped: the leaves of all would be much.
  void expect_gradients_at_backward() {
    const Tensor projections = golden_.tensor("projections");
    const Tensor norms = golden_.tensor("norms");
    const Tensor first = golden_.tensor("first");
    std::vector<NamedParameter> parameters = model_->named_parameters();
    ASSERT_EQ(projections.shape()[0], static_cast<int64_t>(parameters.size()));
    for (size_t i = 0; i < parameters.size(); ++i) {
      const auto row = static_cast<int64_t>(i);
      parameters[i].var.on_grad_ready([=, this, name = parameters[i].name](Var& parameter) {
        Tensor grad = Tensor::empty({parameter.value().numel()}, Dtype::kF32);
        kernels::tree_sum(stream_, parameter.grad(), grad);
        parameter.set_grad({});
        ++gradients_seen_;
        const Tensor row_major = to_row_major(grad.view(parameter.shape()));
        const Fingerprint got = testing::fingerprint(row_major.span<float>());
        const double norm = static_cast<double>(norms.span<float>()[i]);
        EXPECT_LE(got.distance(projections.slice(row, 1).span<float>()), kRelative * norm) << name;
        EXPECT_NEAR(got.norm, norm, kRelative * norm) << name;
        const double rms = norm / std::sqrt(static_cast<double>(grad.numel()));
        EXPECT_TRUE(close(row_major.span<float>().first(4),
                          first.slice(row, 1).span<float>(),
                          {.rel = kRelative, .abs = 10 * kRelative * rms}))
            << name;
      });
    }
  }

  Tensor forward(const Shards& shards, bool training) {
    model_->train(training);
    const Var logits = model_->forward(Var(images_, make_batch(stream_, shards, training)));
    Tensor values = logits.value();
    if (training) {
      const Tensor labels = testing::documented_labels(images_.shape()[0]);
      softmax_cross_entropy(logits, labels).loss.backward();
    }
    return values;
  }

  void expect_logits(const Tensor& got, const std::string& name) {
    const Tensor want = golden_.tensor(name);
    float largest = 0;
    for (const float logit : want.span<float>()) largest = std::max(largest, std::abs(logit));
    EXPECT_TRUE(close(
        got.span<float>(), want.span<float>(), {.abs = kRelative * static_cast<double>(largest)}))
        << name;
  }

  const GoldenCase golden_ = testing::golden_case("resnet_gradients", GetParam());
  std::unique_ptr<Module> model_;
  Tensor images_;
  Stream stream_{Device::kCpu, 2};
  size_t gradients_seen_ = 0;
};

TEST_P(ResNetGradients, LogitsAndGradientsArePyTorchs) {
  expect_gradients_at_backward();
  const int64_t n = images_.shape()[0];
  expect_logits(forward(Shards::single(n), true), "logits");
  expect_logits(forward(Shards::single(n), false), "eval_logits");
  expect_logits(forward(Shards::cut(n, n, 1), true), "logits");
  EXPECT_EQ(gradients_seen_, 2 * model_->parameters().size());
}

INSTANTIATE_TEST_SUITE_P(PyTorch,
                         ResNetGradients,
                         ::testing::Values("resnet20",
                                           "resnet32",
                                           "resnet44",
                                           "resnet56",
                                           "resnet18_cifar",
                                           "resnet18",
                                           "resnet34",
                                           "resnet50",
                                           "resnet101",
                                           "resnet152"),
                         [](const auto& run) { return run.param; });

}  // namespace
}  // namespace lockstep::nn
