// Compares networks with PyTorch in double: logits and every gradient with the same weights.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/reduce/tree_sum.h"
#include "nn/functional.h"
#include "nn/module.h"
#include "tests/support/close.h"
#include "tests/support/documented_batch.h"
#include "tests/support/fingerprint.h"
#include "tests/support/golden.h"

namespace lockstep::testing {

constexpr double kGradientError = 1e-4;  // relative error of logits and gradients
// The tolerance of a gradient that is zero except for rounding errors.
constexpr double kGradientNoise = 1e-6;

inline Tensor uniform(Mt19937& rng, const Shape& shape, double bound) {
  Tensor row_major = Tensor::empty(shape, Dtype::kF32);
  rng.uniform(row_major.span<float>(), static_cast<float>(-bound), static_cast<float>(bound));
  return from_row_major(row_major);
}

// Draws the weights of tools/golden/resnets.py, bit for bit.
inline Tensor drawn_parameter(Mt19937& rng, const nn::NamedParameter& parameter, bool open_gates) {
  const Shape& shape = parameter.var.shape();
  if (shape.rank() > 1) {
    return uniform(rng, shape, std::sqrt(6 / static_cast<double>(shape.stride0())));
  }
  if (!parameter.of_norm) return uniform(rng, shape, 0.1F);
  if (parameter.name.ends_with("weight")) {
    Tensor weight = Tensor::empty(shape, Dtype::kF32);
    rng.uniform(weight.span<float>(), 0.1F, 0.3F);
    return weight;
  }
  // Away from zero, so that rounding changes the sign before few ReLUs.
  Tensor bias = uniform(rng, shape, 0.3F);
  for (float& value : bias.span<float>()) {
    if (open_gates) value = std::abs(value);
    value += std::copysign(0.3F, value);
  }
  return bias;
}

// A case of a golden file, which specifies how weights and images are drawn.
class NetworkGradients {
 public:
  using Make = std::function<std::unique_ptr<nn::Module>(const GoldenCase&, const nn::Init&)>;

  NetworkGradients(const std::string& file,
                   const std::string& name,
                   const Make& make,
                   bool open_gates = false)
      : golden_(golden_case(file, name)) {
    Mt19937 unused(0);
    model_ = make(golden_, nn::Init{unused});
    Mt19937 rng(static_cast<uint64_t>(golden_.number("seed")));
    for (const nn::NamedParameter& parameter : model_->named_parameters()) {
      Tensor value = parameter.var.value();
      const Tensor drawn = drawn_parameter(rng, parameter, open_gates);
      std::ranges::copy(drawn.span<float>(), value.data<float>());
    }
    const auto pixels = static_cast<int64_t>(golden_.number("pixels"));
    images_ = uniform(rng, {static_cast<int64_t>(golden_.number("n")), 3, pixels, pixels}, 1);
  }

  // Compares with PyTorch, once with one shard and once with one shard per image.
  void expect_pytorchs() {
    expect_gradients_at_backward();
    const int64_t n = images_.shape()[0];
    expect_logits(forward(Shards::single(n), true), "logits");
    expect_logits(forward(Shards::single(n), false), "eval_logits");
    expect_logits(forward(Shards::cut(n, n, 1), true), "logits");
    EXPECT_EQ(gradients_seen_, 2 * model_->parameters().size());
  }

 private:
  // Checks each gradient when it is ready and then drops it, since the leaves of all gradients
  // would take much memory.
  void expect_gradients_at_backward() {
    const Tensor projections = golden_.tensor("projections");
    const Tensor norms = golden_.tensor("norms");
    const Tensor first = golden_.tensor("first");
    std::vector<nn::NamedParameter> parameters = model_->named_parameters();
    ASSERT_EQ(projections.shape()[0], static_cast<int64_t>(parameters.size()));
    for (size_t i = 0; i < parameters.size(); ++i) {
      const auto row = static_cast<int64_t>(i);
      parameters[i].var.on_grad_ready([=, this, name = parameters[i].name](Var& parameter) {
        Tensor grad = Tensor::empty({parameter.value().numel()}, Dtype::kF32);
        kernels::tree_sum(stream_, parameter.grad(), grad);
        parameter.set_grad({});
        ++gradients_seen_;
        const Tensor row_major = to_row_major(grad.view(parameter.shape()));
        const Fingerprint got = fingerprint(row_major.span<float>());
        const double norm = static_cast<double>(norms.span<float>()[i]);
        const double error = kGradientError * norm + (norm < kGradientNoise ? kGradientNoise : 0);
        EXPECT_LE(got.distance(projections.slice(row, 1).span<float>()), error) << name;
        EXPECT_NEAR(got.norm, norm, error) << name;
        const double rms = norm / std::sqrt(static_cast<double>(grad.numel()));
        const auto elements = std::min<size_t>(4, static_cast<size_t>(grad.numel()));
        EXPECT_TRUE(close(
            row_major.span<float>().first(elements),
            first.slice(row, 1).span<float>().first(elements),
            {.rel = kGradientError,
             .abs = 10 * kGradientError * rms + (norm < kGradientNoise ? kGradientNoise : 0)}))
            << name;
      });
    }
  }

  Tensor forward(const Shards& shards, bool training) {
    model_->train(training);
    const Var logits = model_->forward(Var(images_, nn::make_batch(stream_, shards, training)));
    Tensor values = logits.value();
    if (training) {
      const Tensor labels = documented_labels(images_.shape()[0]);
      nn::softmax_cross_entropy(logits, labels).loss.backward();
    }
    return values;
  }

  void expect_logits(const Tensor& got, const std::string& name) {
    const Tensor want = golden_.tensor(name);
    float largest = 0;
    for (const float logit : want.span<float>()) largest = std::max(largest, std::abs(logit));
    EXPECT_TRUE(close(got.span<float>(),
                      want.span<float>(),
                      {.abs = kGradientError * static_cast<double>(largest)}))
        << name;
  }

  GoldenCase golden_;
  std::unique_ptr<nn::Module> model_;
  Tensor images_;
  Stream stream_{Device::kCpu, 2};
  size_t gradients_seen_ = 0;
};

}  // namespace lockstep::testing
