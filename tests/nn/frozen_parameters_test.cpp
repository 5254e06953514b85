// Parameters without a gradient keep their bits, whatever updates the others.
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "nn/grad_scaler.h"
#include "nn/optimizer.h"
#include "tests/support/close.h"
#include "tests/support/optimizers.h"

namespace lockstep::nn::frozen_parameters_test {
namespace {

using testing::copy_bytes;
using testing::random_tensor;
using testing::same_bits;
using testing::some_parameters;

constexpr size_t kFrozen = 0;  // conv.weight, which has weight decay
constexpr uint64_t kSteps = 24;

// The parameters of some steps, the first of which loses its gradient.
struct Course {
  Course(const testing::MakeOptimizer& make, uint64_t frozen_from)
      : parameters(some_parameters()), freezes(frozen_from) {
    Tensor value = parameters[kFrozen].var.value();
    value.span<float>()[0] = -0.0F;
    optimizer = make(parameters);
  }

  void train(Stream& stream, uint64_t first, uint64_t last) {
    for (uint64_t step = first; step < last; ++step) {
      optimizer->zero_grad();
      for (size_t i = 0; i < parameters.size(); ++i) {
        if (i == kFrozen && step >= freezes) continue;
        parameters[i].var.set_grad(random_tensor(parameters[i].var.shape(), 100 * step + i));
      }
      optimizer->step(stream);
      if (step + 1 == freezes) kept = bits();
    }
  }
  Tensor bits() const {
    const Tensor& value = parameters[kFrozen].var.value();
    Tensor copied = Tensor::empty(value.shape(), Dtype::kF32);
    copy_bytes(value, copied);
    return copied;
  }

  std::vector<NamedParameter> parameters;
  uint64_t freezes;
  std::unique_ptr<Optimizer> optimizer;
  Tensor kept;
};

// Every optimizer of the tests, and an average of each.
class FrozenParameter : public ::testing::TestWithParam<testing::NamedOptimizer> {
 protected:
  static testing::MakeOptimizer averaged() { return testing::with_ema(GetParam().make); }

  Stream stream_{Device::kCpu, 2};
};

TEST_P(FrozenParameter, KeepsItsBits) {
  for (const testing::MakeOptimizer& make : {GetParam().make, averaged()}) {
    for (const uint64_t freezes : {0, 3, 7, 11}) {
      Course run(make, freezes);
      if (freezes == 0) run.kept = run.bits();
      run.optimizer->begin(stream_);
      run.train(stream_, 0, kSteps);
      EXPECT_TRUE(same_bits(run.bits(), run.kept)) << freezes;
      run.optimizer->finish(stream_);
      EXPECT_TRUE(same_bits(run.bits(), run.kept)) << freezes << ", at the end";
    }
  }
}

TEST_P(FrozenParameter, KeepsItsBitsUnderALossScale) {
  for (const uint64_t freezes : {0, 3, 7}) {
    Course run(averaged(), freezes);
    if (freezes == 0) run.kept = run.bits();
    GradScaler scaler(stream_, *run.optimizer, {}, {.scale = 1});
    run.optimizer->begin(stream_);
    for (uint64_t step = 0; step < kSteps; ++step) {
      run.train(stream_, step, step + 1);
      scaler.update();
    }
    run.optimizer->finish(stream_);
    EXPECT_TRUE(same_bits(run.bits(), run.kept)) << freezes;
  }
}

TEST_P(FrozenParameter, KeepsItsBitsInARunThatIsResumed) {
  constexpr uint64_t kFreezes = 7;
  for (const uint64_t middle : {uint64_t{8}, uint64_t{13}, kSteps}) {
    Course first(GetParam().make, kFreezes);
    first.optimizer->begin(stream_);
    first.train(stream_, 0, middle);
    if (middle == kSteps) first.optimizer->finish(stream_);
    Course resumed(GetParam().make, kFreezes);
    for (size_t i = 0; i < first.parameters.size(); ++i) {
      copy_bytes(first.parameters[i].var.value(), resumed.parameters[i].var.value());
    }
    const std::vector<StateEntry> saved = first.optimizer->state();
    const std::vector<StateEntry> fresh = resumed.optimizer->state();
    for (size_t i = 0; i < saved.size(); ++i) copy_bytes(saved[i].tensor, fresh[i].tensor);
    resumed.optimizer->was_restored();
    resumed.optimizer->begin(stream_);
    resumed.train(stream_, middle, kSteps);
    resumed.optimizer->finish(stream_);
    const Tensor& kept = first.kept;
    const Tensor got = resumed.bits();
    ASSERT_EQ(got.numel(), kept.numel());
    for (int64_t i = 1; i < kept.numel(); ++i) {  // finish() may lose the sign of -0
      EXPECT_EQ(got.data<float>()[i], kept.data<float>()[i]) << middle;
    }
  }
}

// mu * x + (1 - mu) * x is not x in floating point.
TEST_P(FrozenParameter, IsItsAverageIfItWasNeverTrained) {
  Course run(averaged(), 0);
  run.optimizer->begin(stream_);
  run.train(stream_, 0, kSteps);
  const auto& average = dynamic_cast<const Ema&>(*run.optimizer);
  const Tensor before = run.bits();
  const std::vector<Tensor> weights = average.put_into_model(stream_);
  EXPECT_TRUE(same_bits(run.bits(), before));
  average.put_back(stream_, weights);
  EXPECT_TRUE(same_bits(run.bits(), before));
}

INSTANTIATE_TEST_SUITE_P(Optimizers,
                         FrozenParameter,
                         ::testing::ValuesIn(testing::kOptimizers),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace lockstep::nn::frozen_parameters_test
