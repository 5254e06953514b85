#include "engine/update/weight_update.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "tests/trainers/options_of.h"
#include "trainers/config/config_from_flags.h"

namespace lockstep::trainers::weight_update_test {
namespace {

class OneWeight : public nn::Module {
 public:
  OneWeight() : weight(register_parameter("weight", Tensor::zeros({2}, Dtype::kF32))) {}
  Var forward(const Var& x) override { return x; }

  Var weight;
};

TrainingSettings settings_of(const std::string& line) {
  return make_run_request(testing::options_of("--lr 0.5 --momentum 0 " + line));
}

struct Rig {
  explicit Rig(const std::string& line) : update(settings_of(line), 4, stream, model, 4) {
    update.weights_were_written();
  }

  void step(int64_t number, float gradient) {
    Tensor grad = Tensor::empty({2}, Dtype::kF32);
    std::ranges::fill(grad.span<float>(), gradient);
    model.weight.set_grad(grad);
    update.step(number);
  }
  float value() const { return model.weight.value().span<const float>()[0]; }

  Stream stream;
  OneWeight model;
  WeightUpdate update;
};

constexpr const char* kScaled = "--loss-scale dynamic --epochs 3";

kernels::LossScaleState scale_state(int32_t tracker, int32_t consecutive = 0, int64_t applied = 3) {
  return {.scale = 8,
          .growth_tracker = tracker,
          .consecutive_skips = consecutive,
          .applied = applied,
          .skipped = 1};
}

TrainingPosition position_of(int64_t steps,
                             const std::optional<kernels::LossScaleState>& scale = {}) {
  TrainingPosition position;
  position.steps = steps;
  position.loss_scale = scale;
  return position;
}

TEST(WeightUpdate, TheScaleGrowsWhenAnUninterruptedRunsWould) {
  Rig rig(kScaled);
  rig.update.restore(position_of(4, scale_state(1998)));
  rig.step(4, 8);
  EXPECT_EQ(rig.update.read_scale(5).scale, 8);
  rig.step(5, 8);
  const ScaledStep after = rig.update.read_scale(6);
  EXPECT_EQ(after.scale, 16);
  EXPECT_EQ(after.skipped, 1);
  EXPECT_EQ(after.newly_skipped, 0);
  TrainingPosition position = position_of(6);
  rig.update.describe(position);
  EXPECT_EQ(position.applied, 5);
}

// A skipped step changes buffers, so that averages of a run that has skipped all its steps are not
// the values with which this process begins.
TEST(WeightUpdate, AveragesOfARunWithoutAppliedStepsAreKept) {
  for (const char* kind : {"--ema 0.5 ", "--lookahead --lookahead-variant airbench "}) {
    Rig rig(kind + std::string(kScaled));
    TrainingPosition position = position_of(4);
    position.applied = 0;
    position.loss_scale = scale_state(0, 4, 0);
    std::vector<nn::StateEntry> state = rig.update.optimizer().state();
    const auto average = std::ranges::find_if(state, [](const nn::StateEntry& entry) {
      return entry.name == "weight.ema" || entry.name == "weight.slow";
    });
    ASSERT_NE(average, state.end());
    std::ranges::fill(average->tensor.span<float>(), 5.0F);
    rig.update.restore(position);
    rig.update.weights_were_written();
    rig.step(4, std::numeric_limits<float>::infinity());
    EXPECT_EQ(average->tensor.span<float>()[0], 5) << kind;
  }
}

// airbench's Lookahead pulls less and less over the run, and not at all at its end.
TEST(WeightUpdate, LookaheadCountsTheStepsFromTheStartEpoch) {
  const std::string lookahead =
      "--lookahead --lookahead-k 2 --lookahead-variant airbench --lookahead-alpha 0.5 ";
  Rig all(lookahead + "--epochs 2"), late(lookahead + "--epochs 5 --start-epoch 3");
  for (int64_t step = 0; step < 8; ++step) {
    all.step(step, 1);
    late.step(12 + step, 1);
    EXPECT_EQ(all.value(), late.value()) << step;
  }
  all.update.finish();
  late.update.finish();
  EXPECT_EQ(all.value(), late.value());
}

}  // namespace
}  // namespace lockstep::trainers::weight_update_test
