// Compares airbench94's Lookahead in a run's weight updates with PyTorch, for weights and buffers.
#include <gtest/gtest.h>

#include "engine/update/weight_update.h"
#include "kernels/elementwise/copy.h"
#include "tests/support/close.h"
#include "tests/support/golden.h"
#include "tests/trainers/options_of.h"
#include "trainers/config/config_from_flags.h"

namespace lockstep::trainers::lookahead_airbench_test {
namespace {

constexpr testing::Tolerance kTolerance = {2e-6, 1e-6};

class OneOfEach : public nn::Module {
 public:
  explicit OneOfEach(const testing::GoldenCase& golden)
      : weight(register_parameter("weight", golden.tensor("param_before"))),
        mean(register_buffer("mean", golden.tensor("buffer_before"))) {}
  Var forward(const Var& x) override { return x; }

  void expect(const Tensor& want_weight, const Tensor& want_mean, int64_t step) {
    EXPECT_TRUE(testing::close(
        weight.value().span<const float>(), want_weight.span<const float>(), kTolerance))
        << step;
    EXPECT_TRUE(testing::close(mean.span<const float>(), want_mean.span<const float>(), kTolerance))
        << step;
  }

  Var weight;
  Tensor mean;
};

TrainingSettings settings_of(const std::string& epochs) {
  return make_run_request(testing::options_of(
      "--lr 0.1 --momentum 0.85 --nesterov --wd 0.01 --lookahead --lookahead-k 5 "
      "--lookahead-alpha 0.2262190625 --lookahead-variant airbench --epochs " +
      epochs));
}

// A forward pass changes the buffer before the step's gradients are ready.
void take_step(OneOfEach& model, WeightUpdate& update, const Tensor& grads, int64_t step) {
  const Tensor change = testing::golden_case("lookahead_airbench", "run").tensor("changes");
  for (int64_t i = 0; i < model.mean.numel(); ++i) {
    float& mean = model.mean.data<float>()[i];
    mean = 0.5F * mean + change.slice(step, 1).data<float>()[i];
  }
  model.weight.set_grad(grads.slice(step, 1).view(model.weight.shape()));
  update.step(step);
}

TEST(LookaheadAirbench, TwelveStepsAndTheEndArePyTorchs) {
  const testing::GoldenCase golden = testing::golden_case("lookahead_airbench", "run");
  Stream stream;
  OneOfEach model(golden);
  WeightUpdate update(settings_of("2.4"), 4, stream, model, 5);  // 12 steps
  EXPECT_EQ(update.end(), 12);
  update.weights_were_written();
  for (int64_t step = 0; step < 12; ++step) {
    take_step(model, update, golden.tensor("grads"), step);
    model.expect(
        golden.tensor("params").slice(step, 1), golden.tensor("buffers").slice(step, 1), step);
  }
  update.finish();
  model.expect(golden.tensor("param_at_end"), golden.tensor("buffer_at_end"), 12);
}

// Continues from a state that was saved two steps after a synchronization.
TEST(LookaheadAirbench, GoesOnFromItsState) {
  const testing::GoldenCase golden = testing::golden_case("lookahead_airbench", "run");
  const TrainingSettings settings = settings_of("3");
  Stream stream;
  OneOfEach first(golden), second(golden);
  WeightUpdate before(settings, 4, stream, first, 4);
  WeightUpdate after(settings, 4, stream, second, 4);
  before.weights_were_written();
  for (int64_t step = 0; step < 7; ++step) take_step(first, before, golden.tensor("grads"), step);
  const auto copy = [&](const std::vector<nn::StateEntry>& from,
                        const std::vector<nn::StateEntry>& to) {
    ASSERT_EQ(from.size(), to.size());
    for (size_t i = 0; i < from.size(); ++i) {
      ASSERT_EQ(from[i].name, to[i].name);
      std::copy_n(from[i].tensor.bytes(), from[i].tensor.nbytes(), Tensor(to[i].tensor).bytes());
    }
  };
  copy(first.state(), second.state());
  copy(before.optimizer().state(), after.optimizer().state());
  after.weights_were_written();
  for (int64_t step = 7; step < 12; ++step) take_step(second, after, golden.tensor("grads"), step);
  after.finish();
  second.expect(golden.tensor("param_at_end"), golden.tensor("buffer_at_end"), 12);
}

}  // namespace
}  // namespace lockstep::trainers::lookahead_airbench_test
