// How many kernels a step of ResNet-50 asks of the device. They are queued and never run.
#include <gtest/gtest.h>

#include "comm/gradient_reducer.h"
#include "comm/single.h"
#include "engine/update/weight_update.h"
#include "kernels/conv/conv2d_fused.h"
#include "nn/functional.h"
#include "nn/resnet.h"
#include "tests/emulation/runtime/fake_runtime.h"
#include "trainers/config/run_request.h"
#include "trainers/planner/step_convolutions.h"

namespace lockstep::testing::launches_test {
namespace {

using emulation::runtime_counters;

// What is queued would run where its owners wait for it.
struct ForgetsWork {
  ForgetsWork() = default;
  ForgetsWork(const ForgetsWork&) = delete;
  ForgetsWork& operator=(const ForgetsWork&) = delete;
  ~ForgetsWork() { emulation::reset_runtime(); }
};

// As --autotune would, were each of them faster.
void choose_all_forms(Stream& stream, const PrecisionConfig& precision) {
  trainers::ModelOptions network = trainers::usual_network("resnet50");
  network.image = {3, 64, 64};
  for (const auto& call :
       trainers::convolutions_of(trainers::run_dry_step(network, 2, precision))) {
    for (const auto& form : kernels::fused_forms(call.problem)) kernels::choose_form(stream, form);
  }
}

// One rank, one shard, -O2 with f16 and dynamic loss scaling.
std::map<std::string, int64_t, std::less<>> launches_of_a_step(bool fuses) {
  trainers::ResolvedRun run;
  run.request.device = Device::kCuda;
  run.request.epochs = 1;
  run.request.precision.level = OptLevel::kO2;
  run.request.precision.master_weights = run.request.precision.keep_batchnorm_fp32 = true;
  run.request.precision.loss_scaling.emplace();
  run.request.optimizer.lr = 0.1;
  run.request.optimizer.momentum = 0.9;
  run.request.optimizer.weight_decay = 1e-4;
  Stream stream(Device::kCuda);
  stream.workspace(size_t{256} << 20, 0);  // memory that grows waits for what is queued
  if (fuses) choose_all_forms(stream, run.request.precision);
  Mt19937 rng(1);
  nn::ResNet model(nn::Init{rng, Device::kCuda}, 50, {});
  WeightUpdate update(run.request, run.batch.images, stream, model, 100);
  comm::SingleCommunicator alone;
  std::vector<Var> parameters;
  std::vector<std::string> names;
  for (const nn::NamedParameter& parameter : model.named_parameters()) {
    parameters.push_back(parameter.var);
    names.push_back(parameter.name);
  }
  comm::GradientReducer reducer(alone, stream, parameters, names);
  update.weights_were_written();
  const Tensor pixels = Tensor::empty({2, 3, 64, 64}, Dtype::kU8, Device::kCuda);
  const Tensor labels = Tensor::empty({2}, Dtype::kI32, Device::kCuda);

  const ForgetsWork forgets;
  runtime_counters.launches_of.clear();
  update.optimizer().zero_grad();
  const Var images = nn::normalize_image(
      pixels, nn::make_batch(stream, Shards::single(2), true, run.request.precision.network()));
  nn::CrossEntropy result = nn::softmax_cross_entropy(model.forward(images), labels, {});
  result.loss.backward(update.seed(1));
  reducer.finish();
  update.step(0);
  return runtime_counters.launches_of;
}

// With convolutions as cuDNN has them: the emulated machine's, or as it would have them.
int64_t count_launches(bool fuses) {
  emulation::reset_runtime();
  emulation::set_stream_order(emulation::StreamOrder::kLazy);
  auto launches = launches_of_a_step(fuses);

  // A call a pass; weight gradients are widened; the images, twice, and the first layer's weights
  // get a fourth channel.
  constexpr int64_t kConvolutions = 53, kPasses = 3 * kConvolutions - 1;
  const bool over_cudnn = launches.contains("cudnn forward");
  if (!over_cudnn) {
    std::erase_if(launches, [](const auto& op) { return op.first.starts_with("conv2d"); });
    launches["cudnn"] = kPasses + kConvolutions + 3;
  }
  int64_t all = 0;
  for (const auto& [op, count] : launches) {
    ::testing::Test::RecordProperty(op, static_cast<int>(count));
    all += count;
  }
  ::testing::Test::RecordProperty("all", static_cast<int>(all));
  return all;
}

TEST(Launches, AStepOfResNet50) {
  const int64_t all = count_launches(false);
  EXPECT_LE(all, 450);
  // All layers but the stem give sums: their batch norms are a launch forward, no more two.
  EXPECT_EQ(count_launches(true), all - 52);
}

}  // namespace
}  // namespace lockstep::testing::launches_test
