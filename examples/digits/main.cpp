// Trains the ConvNet on the built-in digits, on two ranks that are threads: no MPI, no files.
#include <cstdio>
#include <exception>

#include <lockstep/lockstep.h>

using namespace lockstep;  // NOLINT(google-build-using-namespace): a program of one file

void train(Communicator& ranks) {
  Mt19937 rng(42);  // PyTorch's generator gives PyTorch's initial weights
  nn::ConvNet network(nn::Init{rng});
  Trainer trainer(ranks,
                  network,
                  data::open_digits(),
                  {.batch = 64,
                   .shards = 8,  // the same bits on 1, 2, 4 and 8 ranks
                   .batch_norm_groups = 8,
                   .optimizer = {.lr = 0.02, .momentum = 0.9}});
  trainer.run([&](const StepReport& step) {
    if (ranks.rank() == 0 && step.step % 100 == 0) std::printf("loss %.4f\n", step.loss);
    return step.step < 500;  // half an epoch
  });
  const EvaluationReport found = trainer.evaluate();
  if (ranks.rank() == 0) std::printf("%.2f %% of the test images\n", found.accuracy());
}

int main() {
  try {
    spawn(2, train);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "digits: %s\n", error.what());
    return 1;
  }
}
