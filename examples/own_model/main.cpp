// A network of your own on CIFAR-10, or on the built-in shapes without --data. Ranks are processes
// started by mpirun or torchrun, or threads. With four shards per step, 1, 2 and 4 ranks of either
// kind give the same bits.
// usage: own_model FILE.safetensors [--data FOLDER] [--threads RANKS] [--steps N]
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include <lockstep/lockstep.h>

using namespace lockstep;  // NOLINT(google-build-using-namespace): a program of one file

namespace {

// Two convolutions and a linear layer for color images of 32 x 32. Files of weights have the names
// given to register_module().
class Network : public nn::Module {
 public:
  explicit Network(const nn::Init& init)
      : conv1_(init, {.in_channels = 3, .out_channels = 16, .kernel = 3, .pad = 1, .bias = false}),
        norm1_(init, 16, {.activation = nn::Activation::kRelu}),
        conv2_(init, {.in_channels = 16, .out_channels = 32, .kernel = 3, .pad = 1, .bias = false}),
        norm2_(init, 32, {.activation = nn::Activation::kRelu}),
        pool_(2),
        fc_(init, {32, 8, 8}, 10) {
    register_module("conv1", conv1_);
    register_module("bn1", norm1_);
    register_module("conv2", conv2_);
    register_module("bn2", norm2_);
    register_module("fc", fc_);
  }

  Var forward(const Var& x) override {
    const Var half = pool_.forward(norm1_.forward(conv1_.forward(x)));
    return fc_.forward(pool_.forward(norm2_.forward(conv2_.forward(half))));
  }

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm norm1_;
  nn::Conv2d conv2_;
  nn::BatchNorm norm2_;
  nn::MaxPool2d pool_;
  nn::Linear fc_;
};

struct Options {
  std::string file, data;
  int threads = 0;  // ranks of this process; 0: the launcher's
  int steps = 0;    // 0: one epoch
};

void train(Communicator& ranks, const Options& options) {
  Mt19937 rng(42);
  Network network(nn::Init{rng});
  Trainer trainer(ranks,
                  network,
                  data::open_dataset(options.data.empty() ? "shapes" : "cifar10", options.data),
                  {.batch = 64,
                   .shards = 4,
                   .batch_norm_groups = 4,
                   .optimizer = {.lr = 0.01, .momentum = 0.9, .weight_decay = 1e-4},
                   .schedule = {.kind = ScheduleKind::kCosine}});
  trainer.run([&](const StepReport& report) {
    if (ranks.rank() == 0 && report.step % 20 == 0) {
      std::printf("step %d: loss %.4f\n", static_cast<int>(report.step), report.loss);
    }
    return report.step != options.steps;
  });
  const EvaluationReport found = trainer.evaluate();
  if (ranks.rank() == 0) std::printf("%.2f %% of the test images\n", found.accuracy());
  trainer.save(options.file);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc % 2 != 0) {
    return std::puts("usage: own_model FILE [--data FOLDER] [--threads RANKS] [--steps N]"), 2;
  }
  Options options{.file = argv[1], .data = {}};
  for (int i = 2; i < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--data") options.data = argv[i + 1];
    if (flag == "--threads") options.threads = std::atoi(argv[i + 1]);
    if (flag == "--steps") options.steps = std::atoi(argv[i + 1]);
  }
  try {
    if (options.threads > 0) {
      spawn(options.threads, [&](Communicator& ranks) { train(ranks, options); });
    } else {
      train(*comm::connect(comm::read_launch()).ranks, options);
    }
  } catch (const Error& error) {
    std::fputs(format_error(error).c_str(), stderr);
    return static_cast<int>(error.code());
  }
}
