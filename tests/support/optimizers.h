// Every type of optimizer, and some parameters for it.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "nn/optimizer.h"
#include "tests/support/random_tensor.h"

namespace lockstep::testing {

inline nn::NamedParameter parameter(const std::string& name, Tensor value) {
  const Shape shape = value.shape();
  return {.name = name, .var = Var(std::move(value), true), .file_shape = shape};
}

inline std::vector<nn::NamedParameter> some_parameters() {
  return {parameter("conv.weight", random_tensor({5, 3, 2, 2}, 1)),
          parameter("conv.bias", random_tensor({5}, 2)),
          parameter("fc.weight", random_tensor({3, 7}, 3))};
}

using MakeOptimizer =
    std::function<std::unique_ptr<nn::Optimizer>(std::vector<nn::NamedParameter>)>;

struct NamedOptimizer {
  const char* name;
  MakeOptimizer make;
};
inline void PrintTo(const NamedOptimizer& optimizer, std::ostream* out) {  // NOLINT: GoogleTest's
  *out << optimizer.name;
}

inline std::unique_ptr<nn::Optimizer> make_sgd(std::vector<nn::NamedParameter> parameters) {
  return std::make_unique<nn::Sgd>(
      nn::without_bias_decay(std::move(parameters), 0.01),
      kernels::SgdParams{.lr = 0.1F, .momentum = 0.9F, .nesterov = true});
}

inline std::unique_ptr<nn::Optimizer> make_larc(std::vector<nn::NamedParameter> parameters) {
  return std::make_unique<nn::Sgd>(nn::without_bias_decay(std::move(parameters), 0.01),
                                   kernels::SgdParams{.lr = 0.1F, .momentum = 0.9F},
                                   nn::LarcParams{});
}

inline std::unique_ptr<nn::Optimizer> make_adam(std::vector<nn::NamedParameter> parameters) {
  return std::make_unique<nn::Adam>(std::move(parameters),
                                    kernels::AdamParams{.weight_decay = 0.1, .decoupled = true});
}

inline std::unique_ptr<nn::Optimizer> make_muon(std::vector<nn::NamedParameter> parameters) {
  return std::make_unique<nn::Muon>(nn::without_bias_decay(std::move(parameters), 0.01),
                                    nn::MuonParams{});
}

inline std::unique_ptr<nn::Optimizer> make_bf16_muon(std::vector<nn::NamedParameter> parameters) {
  return std::make_unique<nn::Muon>(nn::without_bias_decay(std::move(parameters), 0.01),
                                    nn::MuonParams{.products = Dtype::kBF16});
}

inline std::unique_ptr<nn::Optimizer> make_lamb(std::vector<nn::NamedParameter> parameters) {
  return std::make_unique<nn::Lamb>(nn::without_bias_decay(std::move(parameters), 0.01));
}

template <class Fast>
MakeOptimizer with_lookahead(Fast fast, nn::LookaheadVariant variant) {
  return [=](std::vector<nn::NamedParameter> parameters) {
    return std::make_unique<nn::Lookahead>(
        fast(std::move(parameters)),
        nn::LookaheadParams{.k = 5, .variant = variant, .total_steps = 40});
  };
}

// Averages the parameters and a buffer that nothing changes.
inline MakeOptimizer with_ema(const MakeOptimizer& fast) {
  return [=](std::vector<nn::NamedParameter> parameters) {
    const Tensor buffer = random_tensor({3}, 9);
    return std::make_unique<nn::Ema>(
        fast(std::move(parameters)),
        std::vector<nn::StateEntry>{{.name = "mean", .tensor = buffer, .file_shape = {3}}},
        0.9);
  };
}

inline void copy_bytes(const Tensor& from, Tensor to) {
  ASSERT_EQ(from.nbytes(), to.nbytes());
  std::copy_n(from.bytes(), from.nbytes(), to.bytes());
}

inline const NamedOptimizer kOptimizers[] = {
    {"Sgd", make_sgd},
    {"LarcSgd", make_larc},
    {"AdamW", make_adam},
    {"Muon", make_muon},
    {"Bf16Muon", make_bf16_muon},
    {"Lamb", make_lamb},
    {"LookaheadSgd", with_lookahead(make_sgd, nn::LookaheadVariant::kAlphadl)},
    {"FallingLookaheadSgd", with_lookahead(make_sgd, nn::LookaheadVariant::kAirbench)},
    {"LookaheadAdamW", with_lookahead(make_adam, nn::LookaheadVariant::kPaper)},
    {"EmaLookaheadSgd", with_ema(with_lookahead(make_sgd, nn::LookaheadVariant::kPaper))}};

}  // namespace lockstep::testing
