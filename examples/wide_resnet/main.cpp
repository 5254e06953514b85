// WRN-16-2 (arXiv 1605.07146), a network of your own, on CIFAR-10 or the built-in shapes: its
// weights and its outputs for all test images, the same bits on 1, 2 and 4 ranks.
// usage: wide_resnet RANKS STEPS FOLDER [CIFAR-10]
#include <cstdio>
#include <cstdlib>
#include <string>

#include <lockstep/lockstep.h>

using namespace lockstep;  // NOLINT(google-build-using-namespace): a program of one file

// Norm and ReLU come before each convolution.
const nn::BatchNormOptions kThenRelu{.activation = nn::Activation::kRelu};

class Block : public nn::Module {
 public:
  Block(const nn::Init& init, int64_t in, int64_t out, int stride)
      : norm_(make_module<nn::BatchNorm>("norm", init, in, kThenRelu)),
        branch_(make_module<nn::Sequential>("branch")) {
    branch_.add<nn::Conv2d>(init, nn::conv_before_norm(in, out, 3, stride));
    branch_.add<nn::BatchNorm>(init, out, kThenRelu);
    branch_.add<nn::Conv2d>(init, nn::conv_before_norm(out, out, 3));
    const nn::Conv2dOptions narrow = nn::conv_before_norm(in, out, 1, stride);
    if (in != out) shortcut_ = &make_module<nn::Conv2d>("shortcut", init, narrow);
  }
  Var forward(const Var& x) override {
    const Var y = norm_.forward(x);
    return nn::add(branch_.forward(y), shortcut_ == nullptr ? x : shortcut_->forward(y));
  }

 private:
  nn::BatchNorm& norm_;
  nn::Sequential& branch_;
  nn::Conv2d* shortcut_ = nullptr;
};

class WideResNet : public nn::Sequential {
 public:
  explicit WideResNet(const nn::Init& init) {
    add<nn::Conv2d>(init, nn::conv_before_norm(3, 16, 3));
    for (int64_t i = 0, in = 16; i < 6; in = 32 << (i++ / 2)) {
      add<Block>(init, in, 32 << (i / 2), i == 2 || i == 4 ? 2 : 1);
    }
    add<nn::BatchNorm>(init, 128, kThenRelu);
    add<nn::GlobalAvgPool>();
    add<nn::Linear>(init, 128, 10);
  }
};

int main(int argc, char** argv) try {
  if (argc < 4) return std::puts("usage: wide_resnet RANKS STEPS FOLDER [CIFAR-10]"), 2;
  const std::string folder = argv[3], data = argc > 4 ? argv[4] : "";
  spawn(std::atoi(argv[1]), [&](Communicator& ranks) {
    Mt19937 rng(42);
    WideResNet network(nn::Init{rng});
    TrainerOptions options{.batch = 128, .shards = 4, .batch_norm_groups = 4, .epochs = 100};
    options.optimizer = {.lr = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 5e-4};
    options.schedule = {.kind = ScheduleKind::kCosine};
    const auto images = data::open_dataset(data.empty() ? "shapes" : "cifar10", data);
    Trainer trainer(ranks, network, images, options);
    trainer.run([&](const StepReport& report) { return report.step < std::atoi(argv[2]); });
    trainer.save(folder + "/weights.safetensors");
    trainer.save_logits(folder + "/logits.safetensors");
  });
} catch (const Error& error) {
  std::fputs(format_error(error).c_str(), stderr);
  return static_cast<int>(error.code());
}
