// usage: cudnn_steps NETWORK LEVEL DEVICE PIXELS STEPS
// NETWORK: resnet20 or narrow50; LEVEL: O0 or O2; DEVICE: cpu or cuda.
// Steps of a ResNet on random images of PIXELS x PIXELS, 32 a step in 4 shards, on any number of
// ranks; with all fused forms in O2. Rank 0 prints each step's loss and a digest of the weights.
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "bench/ranks.h"
#include "core/cuda/device.h"
#include "core/error.h"
#include "data/synthetic.h"
#include "engine/state/state_tensors.h"
#include "engine/training.h"
#include "engine/update/weights.h"
#include "kernels/conv/conv2d_fused.h"
#include "nn/cifar_resnet.h"
#include "nn/functional.h"
#include "nn/init.h"
#include "trainers/cli/gradient_route.h"
#include "trainers/loop/training_parts.h"
#include "trainers/planner/step_convolutions.h"

namespace lockstep::testing::cudnn_steps {
namespace {

constexpr int64_t kImages = 32, kShards = 4, kClasses = 10;

// ResNet-50 with an eighth of the channels: the 7x7 stem, the pool and 16 bottlenecks.
class NarrowResNet50 : public nn::Module {
 public:
  explicit NarrowResNet50(const nn::Init& init)
      : conv1_(init,
               {.in_channels = 3,
                .out_channels = kWidth,
                .kernel = 7,
                .stride = 2,
                .pad = 3,
                .bias = false}),
        bn1_(init, kWidth, {.activation = nn::Activation::kRelu}),
        pool_(3, 2, 1),
        fc_(init, 8 * kWidth * nn::Bottleneck::kExpansion, kClasses) {
    register_module("conv1", conv1_);
    register_module("bn1", bn1_);
    int64_t channels = kWidth, planes = kWidth;
    for (const int depth : {3, 4, 6, 3}) {
      std::vector<std::unique_ptr<nn::ResidualBlock>> blocks;
      for (int b = 0; b < depth; ++b) {
        const int stride = b == 0 && !stages_.empty() ? 2 : 1;
        std::unique_ptr<nn::Module> shortcut;
        if (b == 0) {
          shortcut = std::make_unique<nn::ProjectionShortcut>(
              init, channels, planes * nn::Bottleneck::kExpansion, stride);
        }
        blocks.push_back(std::make_unique<nn::Bottleneck>(
            init, nn::BlockOptions{channels, planes, stride}, std::move(shortcut)));
        channels = planes * nn::Bottleneck::kExpansion;
      }
      stages_.push_back(std::make_unique<nn::ResidualStage>(std::move(blocks)));
      register_module(fmt::format("layer{}", stages_.size()), *stages_.back());
      planes *= 2;
    }
    register_module("fc", fc_);
    for (const nn::NamedParameter& parameter : named_parameters()) {
      Tensor value = parameter.var.value();
      if (value.shape().rank() == 4) nn::kaiming_normal(init, nn::Fan::kOut, value);
      if (parameter.name.ends_with(".bn3.weight")) nn::fill(init, 0.1F, value);
    }
  }

  Var forward(const Var& x) override {
    nn::Forked y = nn::unforked(pool_.forward(bn1_.forward(conv1_.to_norm(x))));
    for (const auto& stage : stages_) y = stage->forward(y);
    return fc_.forward(nn::global_avg_pool(y.value));
  }

 private:
  static constexpr int64_t kWidth = 8;

  nn::Conv2d conv1_;
  nn::BatchNorm bn1_;
  nn::MaxPool2d pool_;
  std::vector<std::unique_ptr<nn::ResidualStage>> stages_;
  nn::Linear fc_;
};

struct Asked {
  std::string network;
  bool half = false;
  Device device = Device::kCpu;
  int64_t pixels = 0, steps = 0;
};

Asked read(const std::vector<std::string>& arguments) {
  if (arguments.size() != 5) {
    throw UsageError("five arguments are needed", "", "cudnn_steps resnet20 O2 cuda 16 20");
  }
  return {.network = arguments[0],
          .half = arguments[1] == "O2",
          .device = arguments[2] == "cuda" ? Device::kCuda : Device::kCpu,
          .pixels = std::stoll(arguments[3]),
          .steps = std::stoll(arguments[4])};
}

std::unique_ptr<nn::Module> make_network(const Asked& asked, Device device) {
  Mt19937 rng(3);
  const nn::Init init{rng, device};
  if (asked.network == "narrow50") return std::make_unique<NarrowResNet50>(init);
  return std::make_unique<nn::CifarResNet>(init, 20);
}

trainers::ResolvedRun run_of(const Asked& asked, int ranks) {
  trainers::ResolvedRun run{
      .batch = {.ranks = ranks, .images = kImages, .shards = kShards, .bn_groups = kShards}};
  trainers::RunRequest& request = run.request;
  request.device = asked.device;
  request.dataset = "synthetic";
  request.epochs = 100;
  request.stall_abort_s = 120;
  request.max_steps = asked.steps;
  request.optimizer.lr = 0.001;
  request.optimizer.momentum = 0.9;
  request.optimizer.weight_decay = 1e-4;
  request.print_freq = 1;
  if (asked.half) {
    request.precision = at_level(OptLevel::kO2);
    request.precision.loss_scaling = LossScaling{.initial = 1024};
  }
  return run;
}

// Chooses every form that cuDNN has for the network's layers.
void choose_forms(const Asked& asked, const PrecisionConfig& precision, Stream& stream) {
  const int64_t images = kImages / kShards;
  const auto network = make_network(asked, Device::kDry);
  const StoredWeights stored(precision, *network);
  Stream dry(Device::kDry);
  const Var x = nn::normalize_image(
      Tensor::empty({images, 3, asked.pixels, asked.pixels}, Dtype::kU8, Device::kDry),
      nn::make_batch(dry, Shards::single(images), true, precision.network()));
  network->forward(x);
  for (const auto& call : trainers::convolutions_of({.images = images, .ledger = dry.ledger()})) {
    for (const auto& form : kernels::fused_forms(call.problem)) kernels::choose_form(stream, form);
  }
}

class LossPrinter final : public TrainingObserver {
 public:
  explicit LossPrinter(const bench::Printer& printer) : printer_(printer) {}
  void on_figures(Training& /*training*/, const StepMetrics& metrics) override {
    printer_.print(fmt::format("loss {:.9g}\n", metrics.loss));
  }

 private:
  const bench::Printer& printer_;
};

void train(const Asked& asked, const comm::Launch& launch, const comm::Connection& connection) {
  Communicator& ranks = *connection.ranks;
  if (asked.device == Device::kCuda) cuda::select_device(launch.local_rank, launch.local_size);
  trainers::ResolvedRun run = run_of(asked, ranks.size());
  const trainers::GradientRoute route =
      trainers::choose_gradient_route(run.request, connection.transport, ranks);
  run.transport = route.transport;
  const auto random = std::make_shared<data::Synthetic>(data::Synthetic::Options{
      .images = 2 * kImages, .classes = kClasses, .shape = {3, asked.pixels, asked.pixels}});
  const data::DatasetPair images = {.train = random, .test = random};
  Stream stream(asked.device);
  if (asked.half && asked.device == Device::kCuda) {
    choose_forms(asked, run.request.precision, stream);
  }
  const auto network = make_network(asked, asked.device);
  trainers::Console console({.prints = false});
  StepInputs inputs = trainers::step_inputs(run, images, ranks, stream, *network);
  inputs.exchange = route.exchange;
  const trainers::TrainingParts parts{std::move(inputs), run, console};
  const bench::Printer printer(ranks.rank() == 0 ? stdout : nullptr);
  LossPrinter observer(printer);
  Training training(parts, trainers::training_plan(parts), observer);
  training.share_weights();
  while (training.steps() < asked.steps) training.train_step();
  printer.print(fmt::format("weights {:016x}\n", state_digest(*network)));
}

int run(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  Asked asked;
  return bench::run_on_ranks(
      arguments,
      [&] {
        asked = read(arguments);
        return bench::RanksRequest{};
      },
      [&](const comm::Launch& launch, const comm::Connection& connection) {
        train(asked, launch, connection);
        connection.ranks->barrier();
      });
}

}  // namespace
}  // namespace lockstep::testing::cudnn_steps

int main(int argc, char** argv) {
  return lockstep::testing::cudnn_steps::run(argc, argv);
}
