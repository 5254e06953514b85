#include <fmt/core.h>
#include <gtest/gtest.h>

#include "nn/optimizer.h"
#include "tests/reference/newton_schulz.h"
#include "tests/support/close.h"
#include "tests/support/golden.h"
#include "tests/support/optimizers.h"
#include "tests/support/random_tensor.h"
#include "tests/support/scaled_gradients.h"

namespace lockstep::nn::muon_test {
namespace {

using testing::close;
using testing::copy_bytes;
using testing::parameter;
using testing::random_tensor;
using testing::same_bits;

// A matrix of length 1.
Tensor unit_matrix(const Shape& shape, uint64_t seed) {
  Tensor x = random_tensor(shape, seed);
  double squares = 0;
  for (const float value : x.span<float>()) squares += static_cast<double>(value) * value;
  for (float& value : x.span<float>()) value = static_cast<float>(value / std::sqrt(squares));
  return x;
}

TEST(Muon, OrthogonalizesAsTheReferenceOnAnyNumberOfThreads) {
  for (const Shape& shape :
       {Shape{5, 12}, Shape{12, 5}, Shape{7, 7}, Shape{1, 9}, Shape{9, 1}, Shape{64, 27}}) {
    const Tensor start = unit_matrix(shape, 3);
    reference::Rows rows(static_cast<size_t>(shape[0]));
    for (int64_t i = 0; i < start.numel(); ++i) {
      rows[static_cast<size_t>(i / shape[1])].push_back(start.data<float>()[i]);
    }
    std::vector<double> want;
    for (const auto& row : reference::orthogonalize(rows, 1.5)) {
      want.insert(want.end(), row.begin(), row.end());
    }
    Tensor on_one_thread;
    for (const int threads : {1, 2, 3}) {
      Stream stream(Device::kCpu, threads);
      Tensor x = Tensor::empty(shape, Dtype::kF32);
      copy_bytes(start, x);
      orthogonalize(stream, x, 1.5);
      EXPECT_TRUE(close(x.span<const float>(), want, {1e-4, 1e-4})) << shape[0] << " " << shape[1];
      if (threads == 1) on_one_thread = x;
      EXPECT_TRUE(same_bits(x, on_one_thread)) << threads << " threads";
    }
  }
}

// For x x^T near 1, the rows are orthogonal: squares of the singular values are its eigenvalues.
TEST(Muon, RowsBecomeNearlyOrthogonal) {
  Stream stream;
  Tensor x = unit_matrix({4, 100}, 5);
  orthogonalize(stream, x, 1);
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      double dot = 0;
      for (int64_t k = 0; k < 100; ++k) {
        dot += static_cast<double>(x.data<float>()[i * 100 + k]) * x.data<float>()[j * 100 + k];
      }
      EXPECT_NEAR(dot, i == j ? 1 : 0, 0.5) << i << " " << j;
    }
  }
}

constexpr const char* kNames[] = {"wide", "tall", "conv", "bias"};

std::vector<NamedParameter> golden_parameters(const testing::GoldenCase& golden) {
  std::vector<NamedParameter> parameters;
  for (const char* name : kNames) {
    parameters.push_back(parameter(name, golden.tensor(fmt::format("{}.before", name))));
  }
  return parameters;
}

TEST(Muon, TenStepsAreKellerJordans) {
  for (const auto& golden : testing::golden_cases("muon")) {
    SCOPED_TRACE(golden.name());
    std::vector<NamedParameter> all = golden_parameters(golden);
    const double decay = golden.number("weight_decay");
    Muon optimizer(
        {{{all.begin(), all.begin() + 3}, decay}, {{all[3]}, decay, 2}},
        {.momentum = golden.number("momentum"), .nesterov = golden.number("nesterov") != 0});
    optimizer.set_lr(0.02);
    Stream stream;
    for (int step = 0; step < 10; ++step) {
      for (NamedParameter& each : all) {
        each.var.set_grad(golden.tensor(fmt::format("{}.grad{}", each.name, step)));
      }
      optimizer.step(stream);
      for (const NamedParameter& each : all) {
        const Tensor want = golden.tensor(fmt::format("{}.after{}", each.name, step));
        EXPECT_TRUE(close(each.var.value().span<float>(), want.span<float>(), {1e-5, 1e-5}))
            << each.name << " after step " << step;
      }
    }
  }
}

TEST(Muon, FollowsALossScaleAndSkipsSteps) {
  testing::expect_follows_loss_scale(testing::make_muon);
}

TEST(Muon, AGroupMayLeaveItsMatricesToSgd) {
  std::vector<NamedParameter> by_muon = {parameter("w", random_tensor({3, 4}, 1))};
  std::vector<NamedParameter> by_sgd = {parameter("w", random_tensor({3, 4}, 1))};
  Muon muon({{.parameters = by_muon, .may_orthogonalize = false}}, {});
  Sgd sgd({{.parameters = by_sgd}}, {.momentum = 0.95F, .nesterov = true});
  EXPECT_EQ(muon.state().size(), 1U);
  Stream stream;
  for (uint64_t step = 0; step < 3; ++step) {
    for (auto* each : {&by_muon, &by_sgd}) each->front().var.set_grad(random_tensor({3, 4}, step));
    muon.set_lr(0.1);
    sgd.set_lr(0.1);
    muon.step(stream);
    sgd.step(stream);
    EXPECT_TRUE(same_bits(by_muon[0].var.value(), by_sgd[0].var.value()));
  }
}

}  // namespace
}  // namespace lockstep::nn::muon_test
