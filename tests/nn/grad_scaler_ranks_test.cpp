// PyTorch's trace of overflows, with gradients that each come from one rank alone.
#include <algorithm>

#include <gtest/gtest.h>

#include "comm/gradient_reducer.h"
#include "comm/shared/thread_ranks.h"
#include "nn/grad_scaler.h"
#include "tests/support/close.h"
#include "tests/support/golden.h"
#include "tests/support/optimizers.h"

namespace lockstep::nn::grad_scaler_ranks_test {
namespace {

using testing::GoldenCase;

std::unique_ptr<Optimizer> make_optimizer(const GoldenCase& golden,
                                          const NamedParameter& parameter) {
  const double decay = golden.number("weight_decay");
  if (golden.number("adam") != 0) {
    return std::make_unique<Adam>(std::vector{parameter},
                                  kernels::AdamParams{.weight_decay = decay});
  }
  return std::make_unique<Sgd>(
      std::vector{parameter},
      kernels::SgdParams{.momentum = static_cast<float>(golden.number("momentum")),
                         .weight_decay = static_cast<float>(decay)});
}

kernels::LossScaleRule rule_of(const GoldenCase& golden) {
  return {.growth_factor = golden.number("growth_factor"),
          .backoff_factor = golden.number("backoff_factor"),
          .growth_interval = static_cast<int32_t>(golden.number("growth_interval"))};
}

std::vector<double> learning_rates(const GoldenCase& golden, int64_t steps) {
  std::vector<double> lrs;
  lrs.reserve(static_cast<size_t>(steps));
  for (int64_t i = 0; i < steps; ++i) lrs.push_back(golden.number("lr/" + std::to_string(i)));
  return lrs;
}

// backward() from `seed` gives the parameter this gradient times the seed.
void backward(Stream& stream, const Var& parameter, const Tensor& gradient, const Tensor& seed) {
  auto batch = std::make_shared<Batch>();
  batch->stream = &stream;
  batch->shards = Shards::single(1);
  batch->recording = true;
  const Tensor leaf = Tensor::zeros({1}, Dtype::kF32);
  const Var loss = record(
      "given", leaf, {Var(leaf, batch), parameter}, [&](Stream&, Tensor& scale, Grads& grads) {
        std::ranges::transform(gradient.span<float>(),
                               grads.overwrite(1).span<float>().begin(),
                               [&](float value) { return value * scale.span<float>()[0]; });
      });
  Var(loss).backward(seed);
}

void train_rank(Communicator& ranks, const GoldenCase& golden) {
  const Tensor rows = golden.tensor("grads");
  const int64_t steps = rows.shape()[0];
  const Tensor before = golden.tensor("param_before");
  const NamedParameter parameter =
      testing::parameter("p", Tensor::empty(before.shape(), Dtype::kF32));
  testing::copy_bytes(before, parameter.var.value());
  Stream stream;
  comm::GradientReducer reducer(ranks, stream, {parameter.var}, {parameter.name});
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(golden, parameter);
  GradScaler scaler(stream,
                    *optimizer,
                    rule_of(golden),
                    {.scale = static_cast<float>(golden.number("init_scale"))});
  scaler.set_learning_rates(learning_rates(golden, steps));
  for (int64_t i = 0; i < steps; ++i) {
    optimizer->zero_grad();
    const bool mine = i % ranks.size() == ranks.rank();
    const Tensor row = rows.slice(i, 1);
    backward(stream,
             parameter.var,
             mine ? row : Tensor::zeros(row.shape(), Dtype::kF32),
             scaler.seed(1));
    reducer.finish();
    scaler.check();
    optimizer->step(stream);
    scaler.update();
    const kernels::LossScaleState state = scaler.read();
    const auto at = static_cast<size_t>(i);
    EXPECT_EQ(state.scale, golden.tensor("scales").span<float>()[at]) << "step " << i;
    EXPECT_EQ(state.growth_tracker, golden.tensor("growth_trackers").span<int32_t>()[at]);
    EXPECT_EQ(state.applied + state.skipped, i + 1);
    EXPECT_TRUE(testing::close(parameter.var.value().span<const float>(),
                               golden.tensor("params").slice(i, 1).span<float>(),
                               {1e-6, 1e-6}))
        << "step " << i;
  }
}

class GradScalerRanks : public ::testing::TestWithParam<int> {};

TEST_P(GradScalerRanks, FollowPyTorchStepByStep) {
  for (const GoldenCase& golden : testing::golden_cases("loss_scale")) {
    SCOPED_TRACE(golden.name());
    comm::spawn_ranks(GetParam(), [&](Communicator& ranks) { train_rank(ranks, golden); });
  }
}
INSTANTIATE_TEST_SUITE_P(Ranks, GradScalerRanks, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace lockstep::nn::grad_scaler_ranks_test
