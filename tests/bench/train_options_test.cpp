#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/train/options.h"
#include "core/error.h"

namespace lockstep::bench::train_options_test {
namespace {

using Arguments = std::vector<std::string>;
using ::testing::HasSubstr;

std::string refusal(const Arguments& arguments) {
  try {
    read_synthetic_options(arguments);
  } catch (const UsageError& error) {
    return format_error(error);
  }
  return "accepted";
}

TEST(SyntheticOptions, DefaultsAreHorovods) {
  const SyntheticOptions options = read_synthetic_options({});
  EXPECT_EQ(options.arch, "resnet50");
  EXPECT_EQ(options.batch_size, 32);
  EXPECT_EQ(options.warmup_batches, 10);
  EXPECT_EQ(options.batches_per_iteration, 10);
  EXPECT_EQ(options.iterations, 10);
  EXPECT_EQ(options.algorithm, Algorithm::kTree);
  EXPECT_FALSE(options.json);
  EXPECT_EQ(options.help, "");
}

TEST(SyntheticOptions, AllFlags) {
  const SyntheticOptions options = read_synthetic_options({"--model",
                                                           "resnet18",
                                                           "-b",
                                                           "8",
                                                           "--image-size=64",
                                                           "--classes=7",
                                                           "--cifar-stem",
                                                           "--num-warmup-batches",
                                                           "0",
                                                           "--num-batches-per-iter",
                                                           "2",
                                                           "--num-iters",
                                                           "3",
                                                           "--threads",
                                                           "4",
                                                           "--shards",
                                                           "16",
                                                           "--bn-groups",
                                                           "2",
                                                           "--algorithm",
                                                           "none",
                                                           "--transport",
                                                           "mpi",
                                                           "--stall-abort",
                                                           "9",
                                                           "--opt-level",
                                                           "O2",
                                                           "--dtype",
                                                           "f16",
                                                           "--json"});
  EXPECT_EQ(options.opt_level, OptLevel::kO2);
  EXPECT_EQ(options.dtype, Dtype::kF16);
  EXPECT_EQ(options.warmup_batches, 0);
  EXPECT_EQ(options.batches_per_iteration, 2);
  EXPECT_EQ(options.iterations, 3);
  EXPECT_EQ(options.connect.stall_abort, std::chrono::seconds(9));
  EXPECT_TRUE(options.json);

  const trainers::ModelOptions network = model_options(options);
  EXPECT_EQ(network.arch, "resnet18");
  EXPECT_EQ(network.classes, 7);
  EXPECT_EQ(network.image, (data::ImageShape{3, 64, 64}));
  EXPECT_TRUE(network.cifar_stem);

  const trainers::RunRequest request = run_request(options);
  EXPECT_EQ(request.batch.per_rank, 8);
  EXPECT_EQ(request.threads, 4);
  EXPECT_EQ(request.batch.shards, 16);
  EXPECT_EQ(request.batch.bn_groups, 2);
  EXPECT_EQ(request.exchange.algorithm, Algorithm::kNone);
  EXPECT_EQ(request.exchange.transport, comm::Transport::kMpi);
}

TEST(SyntheticOptions, DeviceInputAndEngines) {
  const trainers::RunRequest usual = run_request(read_synthetic_options({}));
  EXPECT_EQ(usual.device, Device::kCpu);
  EXPECT_EQ(usual.exchange.on_device, DeviceTransport::kHost);
  const SyntheticOptions options = read_synthetic_options({"--device",
                                                           "cuda",
                                                           "--no-graph",
                                                           "--with-input",
                                                           "-j",
                                                           "5",
                                                           "--autotune",
                                                           "--plan-file",
                                                           "plans.json",
                                                           "--opt-level",
                                                           "O2",
                                                           "--dtype",
                                                           "f16"});
  EXPECT_TRUE(options.with_input);
  const trainers::RunRequest request = run_request(options);
  EXPECT_EQ(request.device, Device::kCuda);
  EXPECT_EQ(request.exchange.on_device, DeviceTransport::kAuto);
  EXPECT_FALSE(request.graph);
  EXPECT_EQ(request.workers, 5);
  EXPECT_TRUE(request.autotune);
  EXPECT_EQ(request.plan_file, "plans.json");
  EXPECT_TRUE(request.precision.loss_scaling);  // as train_resnet, so that f16 keeps its gradients
  EXPECT_FALSE(usual.precision.loss_scaling);
}

TEST(SyntheticOptions, SyncBatchNormIsOneGroup) {
  EXPECT_EQ(run_request(read_synthetic_options({"--sync_bn"})).batch.bn_groups, 1);
  EXPECT_FALSE(run_request(read_synthetic_options({})).batch.bn_groups);
}

TEST(SyntheticOptions, ImagesAreThoseTheNetworkIsFor) {
  const auto network = [](const Arguments& arguments) {
    return model_options(read_synthetic_options(arguments));
  };
  EXPECT_EQ(network({"-a", "convnet"}).image, (data::ImageShape{1, 28, 28}));
  EXPECT_EQ(network({"-a", "resnet20"}).image, (data::ImageShape{3, 32, 32}));
  EXPECT_EQ(network({"-a", "resnet20"}).classes, 10);
  EXPECT_EQ(network({"-a", "resnet18"}).image, (data::ImageShape{3, 224, 224}));
  EXPECT_EQ(network({"-a", "resnet18"}).classes, 1000);
  EXPECT_EQ(network({"-a", "resnet18", "--cifar-stem"}).image, (data::ImageShape{3, 32, 32}));
  EXPECT_EQ(network({"-a", "resnet18", "--cifar-stem"}).classes, 10);
}

TEST(SyntheticOptions, BadValuesAreNamed) {
  const std::pair<Arguments, std::string> cases[] = {
      {{"-b", "0"}, "bad value: --batch-size 0"},
      {{"--num-iters", "0"}, "bad value: --num-iters 0"},
      {{"--threads", "two"}, "bad value: --threads two"},
      {{"--algorithm", "oak"}, "tree, ring, star, "},
      {{"--opt-level", "O4"}, "bad value: --opt-level O4"},
      {{"--num-iter", "3"}, "try: --num-iters"},
      {{"resnet50"}, "unknown argument: resnet50"},
  };
  for (const auto& [arguments, said] : cases) {
    EXPECT_THAT(refusal(arguments), HasSubstr(said));
    EXPECT_THAT(refusal(arguments), HasSubstr("\n  try: "));
  }
  EXPECT_EQ(refusal({"-b", "1"}), "accepted");
  EXPECT_EQ(refusal({"--sync-bn", "--bn-groups", "1"}), "accepted");
  EXPECT_THAT(refusal({"--sync-bn", "--bn-groups", "2"}), HasSubstr("contradict each other"));
}

// -b is the batch of one benchmark and the smallest size of another.
TEST(SyntheticOptions, TheAdviceOnErrorsNamesFlagsOfThisProgram) {
  EXPECT_EQ(synthetic_advice(Remedy::kSmallerBatch), "-b sets the batch");
  const std::string help = read_synthetic_options({"--help"}).help;
  for (int i = 0; i <= static_cast<int>(kLastRemedy); ++i) {
    std::istringstream words{std::string(synthetic_advice(static_cast<Remedy>(i)))};
    for (std::string word; words >> word;) {
      if (!word.starts_with('-')) continue;
      EXPECT_THAT(help, HasSubstr("  " + word)) << i;
    }
  }
  for (const Remedy remedy : {Remedy::kMpi, Remedy::kAlgorithm, Remedy::kLongerWait}) {
    EXPECT_NE(synthetic_advice(remedy), "") << static_cast<int>(remedy);
  }
  EXPECT_EQ(synthetic_advice(Remedy::kCpu), "");
}

}  // namespace
}  // namespace lockstep::bench::train_options_test
