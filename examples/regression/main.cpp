// A regression from memory: z = sin(3 x) y, learned from 1,024 points by a network of your own, the
// same bits on 1, 2 and 4 ranks.
// usage: regression [RANKS [FILE.safetensors]]
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <lockstep/lockstep.h>

using namespace lockstep;  // NOLINT(google-build-using-namespace): a program of one file

std::shared_ptr<data::Dataset> points(int64_t count, uint32_t seed) {
  Mt19937 rng(seed);
  Tensor inputs = Tensor::empty({count, 2}, Dtype::kF32),
         targets = Tensor::empty({count}, Dtype::kF32);
  rng.uniform(inputs.span<float>(), -1, 1);
  for (int64_t i = 0; i < count; ++i) {
    const float* at = inputs.data<float>() + 2 * i;
    targets.data<float>()[i] = std::sin(3 * at[0]) * at[1];
  }
  return std::make_shared<data::TensorDataset>("points", inputs, targets);
}

int main(int argc, char** argv) try {
  spawn(argc > 1 ? std::atoi(argv[1]) : 1, [&](Communicator& ranks) {
    Mt19937 rng(42);
    const nn::Init init{rng};
    nn::Sequential network;
    network.add<nn::Linear>(init, 2, 64);
    network.add<nn::Gelu>();
    network.add<nn::Linear>(init, 64, 1);
    TrainerOptions options{.batch = 64, .shards = 4, .batch_norm_groups = 4, .epochs = 40};
    options.optimizer = {.kind = OptimizerKind::kAdam, .lr = 0.03};
    options.schedule = {.kind = ScheduleKind::kCosine};
    Trainer trainer(
        ranks, network, {points(1024, 1), points(256, 2)}, options, {.loss = nn::mse_loss});
    trainer.run();
    const EvaluationReport found = trainer.evaluate();
    if (ranks.rank() == 0) std::printf("mean squared error %.2e\n", found.loss);
    if (argc > 2) trainer.save(argv[2]);
  });
} catch (const Error& error) {
  std::fputs(format_error(error).c_str(), stderr);
  return static_cast<int>(error.code());
}
