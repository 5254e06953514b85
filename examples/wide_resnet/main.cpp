// WRN-16-2 (arXiv 1605.07146), a network of your own, on CIFAR-10 or the built-in shapes: its
// weights and its outputs for all test images, the same bits on 1, 2 and 4 ranks.
// usage: wide_resnet RANKS STEPS FOLDER [CIFAR-10]
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include <lockstep/lockstep.h>

using namespace lockstep;  // NOLINT(google-build-using-namespace): a program of one file

namespace {

nn::Conv2dOptions conv(int64_t in, int64_t out, int kernel, int stride) {
  return {.in_channels = in,
          .out_channels = out,
          .kernel = kernel,
          .stride = stride,
          .pad = kernel / 2,
          .bias = false};
}

// Norm and ReLU come before each convolution.
class Block : public nn::Module {
 public:
  Block(const nn::Init& init, int64_t in, int64_t out, int stride)
      : bn1_(init, in, {.activation = nn::Activation::kRelu}),
        conv1_(init, conv(in, out, 3, stride)),
        bn2_(init, out, {.activation = nn::Activation::kRelu}),
        conv2_(init, conv(out, out, 3, 1)) {
    register_module("bn1", bn1_);
    register_module("conv1", conv1_);
    register_module("bn2", bn2_);
    register_module("conv2", conv2_);
    if (in == out) return;
    shortcut_ = std::make_unique<nn::Conv2d>(init, conv(in, out, 1, stride));
    register_module("shortcut", *shortcut_);
  }
  Var forward(const Var& x) override {
    const Var y = bn1_.forward(x);
    const Var z = conv2_.forward(bn2_.forward(conv1_.forward(y)));
    return nn::add(z, shortcut_ ? shortcut_->forward(y) : x);
  }

 private:
  nn::BatchNorm bn1_;
  nn::Conv2d conv1_;
  nn::BatchNorm bn2_;
  nn::Conv2d conv2_;
  std::unique_ptr<nn::Conv2d> shortcut_;
};

class WideResNet : public nn::Module {
 public:
  explicit WideResNet(const nn::Init& init)
      : conv_(init, conv(3, 16, 3, 1)),
        bn_(init, 128, {.activation = nn::Activation::kRelu}),
        fc_(init, 128, 10) {
    register_module("conv", conv_);
    for (int64_t i = 0, in = 16; i < 6; in = 32 << (i++ / 2)) {
      blocks_.push_back(std::make_unique<Block>(init, in, 32 << (i / 2), i == 2 || i == 4 ? 2 : 1));
      register_module("block" + std::to_string(i), *blocks_.back());
    }
    register_module("bn", bn_);
    register_module("fc", fc_);
  }
  Var forward(const Var& x) override {
    Var y = conv_.forward(x);
    for (const auto& block : blocks_) y = block->forward(y);
    return fc_.forward(nn::global_avg_pool(bn_.forward(y)));
  }

 private:
  nn::Conv2d conv_;
  std::vector<std::unique_ptr<Block>> blocks_;
  nn::BatchNorm bn_;
  nn::Linear fc_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return std::puts("usage: wide_resnet RANKS STEPS FOLDER [CIFAR-10]"), 2;
  const std::filesystem::path folder = argv[3];
  try {
    spawn(std::atoi(argv[1]), [&](Communicator& peers) {
      Mt19937 rng(42);
      WideResNet network(nn::Init{rng});
      TrainerOptions options{.batch = 128, .shards = 4, .batch_norm_groups = 4, .epochs = 100};
      options.optimizer = {.lr = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 5e-4};
      options.schedule = {.kind = ScheduleKind::kCosine};
      Trainer trainer(peers,
                      network,
                      data::open_dataset(argc > 4 ? "cifar10" : "shapes", argc > 4 ? argv[4] : ""),
                      options);
      trainer.run([&](const StepReport& report) { return report.step < std::atoi(argv[2]); });
      trainer.save(folder / "weights.safetensors");
      const Safetensors outputs = trainer.logits();
      if (peers.rank() == 0) write_safetensors(folder / "logits.safetensors", outputs);
    });
  } catch (const Error& error) {
    std::fputs(format_error(error).c_str(), stderr);
    return static_cast<int>(error.code());
  }
}
