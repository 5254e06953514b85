#include <cmath>
#include <numeric>

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

reference::Rows rows_of(const Tensor& x) {
  reference::Rows rows(static_cast<size_t>(x.shape()[0]));
  for (int64_t i = 0; i < x.numel(); ++i) {
    rows[static_cast<size_t>(i / x.shape()[1])].push_back(x.data<float>()[i]);
  }
  return rows;
}

class Orthogonalize : public ::testing::TestWithParam<Dtype> {};

// Of a larger matrix some sums lie so near the middle of two values in bf16 that their order says
// which; five steps make that greater.
TEST_P(Orthogonalize, IsTheReferencesOnAnyNumberOfThreads) {
  const bool is_bf16 = GetParam() == Dtype::kBF16;
  const auto format = is_bf16 ? reference::kBF16Format : reference::kUnrounded;
  for (const Shape& shape :
       {Shape{5, 12}, Shape{12, 5}, Shape{7, 7}, Shape{1, 9}, Shape{9, 1}, Shape{64, 27}}) {
    const Tensor start = unit_matrix(shape, 3);
    const double tolerance = is_bf16 && start.numel() > 100 ? 0.02 : 1e-4;
    std::vector<double> want;
    for (const auto& row : reference::orthogonalize(rows_of(start), 1.5, format)) {
      want.insert(want.end(), row.begin(), row.end());
    }
    Tensor on_one_thread;
    for (const int threads : {1, 2, 3}) {
      Stream stream(Device::kCpu, threads);
      Tensor x = Tensor::empty(shape, Dtype::kF32);
      copy_bytes(start, x);
      orthogonalize(stream, x, 1.5, GetParam());
      EXPECT_TRUE(close(x.span<const float>(), want, {1e-4, tolerance}))
          << shape[0] << " " << shape[1];
      if (threads == 1) on_one_thread = x;
      EXPECT_TRUE(same_bits(x, on_one_thread)) << threads << " threads";
    }
  }
}

// Jacobi: rows are turned in pairs until they are orthogonal; their lengths are the values.
std::vector<double> singular_values(reference::Rows rows) {
  const auto dot = [](const std::vector<double>& a, const std::vector<double>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  };
  for (int sweep = 0; sweep < 20; ++sweep) {
    for (size_t i = 0; i < rows.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const double angle = 0.5 * std::atan2(2 * dot(rows[i], rows[j]),
                                              dot(rows[i], rows[i]) - dot(rows[j], rows[j]));
        for (size_t k = 0; k < rows[i].size(); ++k) {
          const double first = rows[i][k], second = rows[j][k];
          rows[i][k] = std::cos(angle) * first + std::sin(angle) * second;
          rows[j][k] = std::cos(angle) * second - std::sin(angle) * first;
        }
      }
    }
  }
  std::vector<double> values;
  for (const auto& row : rows) values.push_back(std::sqrt(dot(row, row)));
  return values;
}

// Where Keller Jordan's coefficients leave them.
TEST_P(Orthogonalize, LeavesSingularValuesNearOne) {
  for (const Shape& shape : {Shape{4, 100}, Shape{48, 17}, Shape{24, 108}}) {
    Stream stream;
    Tensor x = unit_matrix(shape, 5);
    orthogonalize(stream, x, 1, GetParam());
    reference::Rows rows = rows_of(x);
    if (rows.size() > rows.front().size()) rows = reference::transposed(rows);
    for (const double value : singular_values(rows)) {
      EXPECT_GT(value, 0.66) << shape[0];
      EXPECT_LT(value, 1.16) << shape[0];
    }
  }
}

// The same matrix but for what rounding does: 2^-9 of each product.
TEST(Muon, ProductsInBf16AreNearThoseInF32) {
  Stream stream;
  Tensor x = unit_matrix({24, 108}, 5);
  Tensor y = unit_matrix({24, 108}, 5);
  orthogonalize(stream, x, 1);
  orthogonalize(stream, y, 1, Dtype::kBF16);
  EXPECT_FALSE(close(y.span<const float>(), x.span<const float>(), {.abs = 1e-4}));
  EXPECT_TRUE(close(y.span<const float>(), x.span<const float>(), {.abs = 0.02}));
}

INSTANTIATE_TEST_SUITE_P(Products, Orthogonalize, ::testing::Values(Dtype::kF32, Dtype::kBF16));

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
    const bool is_bf16 = golden.number("bf16") != 0;
    Muon optimizer({{{all.begin(), all.begin() + 3}, decay}, {{all[3]}, decay, 2}},
                   {.momentum = golden.number("momentum"),
                    .nesterov = golden.number("nesterov") != 0,
                    .products = is_bf16 ? Dtype::kBF16 : Dtype::kF32});
    optimizer.set_lr(0.02);
    Stream stream;
    for (int step = 0; step < 10; ++step) {
      for (NamedParameter& each : all) {
        each.var.set_grad(golden.tensor(fmt::format("{}.grad{}", each.name, step)));
      }
      optimizer.step(stream);
      // He rounds sums of matrices to bf16 too; so small ones are up to 0.06 apart, times the rate.
      const double tolerance = is_bf16 ? 1.2e-3 * (step + 1) : 1e-5;
      for (const NamedParameter& each : all) {
        const Tensor want = golden.tensor(fmt::format("{}.after{}", each.name, step));
        EXPECT_TRUE(close(each.var.value().span<float>(), want.span<float>(), {1e-5, tolerance}))
            << each.name << " after step " << step;
      }
    }
  }
}

TEST(Muon, FollowsALossScaleAndSkipsSteps) {
  testing::expect_follows_loss_scale(testing::make_muon);
}

TEST(Muon, AMatrixMayBeEmpty) {
  std::vector<NamedParameter> parameters = {parameter("none", random_tensor({0, 4}, 1)),
                                            parameter("w", random_tensor({3, 4}, 2))};
  Muon muon({{.parameters = parameters}}, {});
  for (NamedParameter& each : parameters) each.var.set_grad(random_tensor(each.file_shape, 3));
  muon.set_lr(0.1);
  Stream stream;
  muon.step(stream);
  EXPECT_FALSE(same_bits(parameters[1].var.value(), random_tensor({3, 4}, 2)));
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
