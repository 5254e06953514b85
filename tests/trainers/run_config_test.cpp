#include "trainers/config/run_config.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainers/options_of.h"

namespace lockstep::trainers::run_config_test {
namespace {

using ::testing::HasSubstr;
using testing::options_of;
using testing::usage_error;
using testing::Variables;

RunConfig config_of(const std::string& line, const Variables& variables = {}) {
  return make_run_config(options_of(line, variables));
}

TEST(RunConfig, TakesOverEveryValue) {
  const RunConfig config = config_of(
      "DIR --dataset mnist -a toy_net -j 3 --val-batch-size 7 --epochs 4 --max-steps 9 --lr 0.5 "
      "--momentum 0.8 --label-smoothing 0.1 --seed 5 --stall-abort 8 -o out "
      "--overwrite -p 6 --progress line -q --transport mpi --batches-per-allreduce 4");
  EXPECT_EQ(config.data, "DIR");
  EXPECT_EQ(config.dataset, "mnist");
  EXPECT_EQ(config.arch, "toy_net");
  EXPECT_EQ(config.workers, 3);
  EXPECT_EQ(config.val_batch_size, 7);
  EXPECT_EQ(config.epochs, 4);
  EXPECT_EQ(config.max_steps, 9);
  EXPECT_EQ(config.optimizer.lr, 0.5);
  EXPECT_EQ(config.optimizer.momentum, 0.8);
  EXPECT_EQ(config.label_smoothing, 0.1);
  EXPECT_EQ(config.seed, 5U);
  EXPECT_EQ(config.stall_abort_s, 8);
  EXPECT_EQ(config.output_dir, "out");
  EXPECT_TRUE(config.overwrite);
  EXPECT_EQ(config.print_freq, 6);
  EXPECT_EQ(config.progress, "line");
  EXPECT_TRUE(config.quiet);
  EXPECT_EQ(config.exchange.transport, comm::Transport::kMpi);
  EXPECT_EQ(config.exchange.algorithm, Algorithm::kTree);
  EXPECT_EQ(config.micro_steps, 4);
  EXPECT_EQ(config.precision.level, OptLevel::kO0);
  EXPECT_EQ(config.device, Device::kCpu);
  EXPECT_FALSE(config.normalize);
}

TEST(RunConfig, DataSetWithoutDirectory) {
  EXPECT_EQ(config_of("").dataset, "digits");
  EXPECT_EQ(config_of("DIR").dataset, "auto");
  EXPECT_EQ(config_of("--dummy").dataset, "synthetic");
  const auto error = usage_error([] { config_of("--dataset mnist"); });
  ASSERT_TRUE(error);
  EXPECT_STREQ(error->what(), "--dataset mnist needs a data directory");
  const auto color = usage_error(
      [] { make_run_config(options_of("--dataset cifar10", {}, Program::kTrainResnet)); });
  ASSERT_TRUE(color);
  EXPECT_THAT(color->hint(), HasSubstr("--dataset shapes, which is built in"));
}

TEST(RunConfig, SyncBnIsOneGroup) {
  EXPECT_EQ(config_of("").asked.bn_groups, std::nullopt);
  EXPECT_EQ(config_of("--sync-bn").asked.bn_groups, 1);
  EXPECT_EQ(config_of("--sync-bn --bn-groups 1").asked.bn_groups, 1);
  EXPECT_TRUE(usage_error([] { config_of("--sync-bn --bn-groups 4"); }));
  EXPECT_EQ(config_of("--preset demo-ddp").asked.bn_groups, 1);
  EXPECT_EQ(config_of("--preset demo-ddp --bn-groups 4").asked.bn_groups, 4);
}

TEST(RunConfig, EnginesAreChosenOnCudaAlone) {
  for (const char* flag : {"--autotune", "--plan-file p.json"}) {
    const auto error = usage_error([&] { config_of(flag); });
    ASSERT_TRUE(error) << flag;
    EXPECT_THAT(error->what(), HasSubstr(" is for --device cuda"));
    EXPECT_THAT(error->hint(), HasSubstr("--device cuda"));
  }
  const RunConfig config = config_of("--device cuda --autotune --plan-file p.json");
  EXPECT_TRUE(config.autotune);
  EXPECT_EQ(config.plan_file, "p.json");
  EXPECT_FALSE(config_of("--device cuda").autotune);
}

TEST(RunConfig, PresetsKeepRawPixels) {
  for (const char* preset : {"demo-baseline", "demo-ddp"}) {
    const RunConfig config = config_of(fmt::format("--preset {}", preset));
    ASSERT_TRUE(config.normalize) << preset;
    EXPECT_TRUE(config.normalize->mean.empty()) << preset;
  }
  EXPECT_FALSE(config_of("--preset demo-ddp --normalize dataset").normalize);
}

TEST(RunConfig, PresetBatchIsNoDemand) {
  const RunConfig config = config_of("--preset demo-baseline --global-batch-size 100");
  EXPECT_EQ(config.asked.batch_size, std::nullopt);
  EXPECT_EQ(config.default_batch_size, 32);
  EXPECT_EQ(config_of("-b 5").asked.batch_size, 5);
  EXPECT_EQ(config_of("", {{"LOCKSTEP_BATCH_SIZE", "6"}}).asked.batch_size, 6);
}

TEST(ThreadsPerRank, FlagThenOpenMpThenShareOfCores) {
  const HostShare host = {.affinity_cores = 16, .host_cores = 16, .ranks_on_host = 4};
  EXPECT_EQ(threads_per_rank(config_of("--threads 3"), "5", host), 3);
  EXPECT_EQ(threads_per_rank(config_of(""), "5", host), 5);
  EXPECT_EQ(threads_per_rank(config_of(""), "6,2", host), 6);
  EXPECT_EQ(threads_per_rank(config_of(""), "", host), 4);
  EXPECT_EQ(threads_per_rank(config_of(""), nullptr, host), 4);
  EXPECT_EQ(threads_per_rank(config_of(""), nullptr, {3, 16, 4}), 3);
  EXPECT_EQ(threads_per_rank(config_of(""), nullptr, {16, 2, 8}), 1);
  for (const char* bad : {"many", "0", "-2", ",", "1e3"}) {
    const auto error = usage_error([&] { threads_per_rank(config_of(""), bad, host); });
    ASSERT_TRUE(error) << bad;
    EXPECT_THAT(error->what(), HasSubstr("OMP_NUM_THREADS="));
  }
}

TEST(ThreadsPerRank, HostShareCountsThisMachine) {
  const HostShare host = host_share(3);
  EXPECT_GE(host.host_cores, 1);
  EXPECT_GE(host.affinity_cores, 1);
  EXPECT_EQ(host.ranks_on_host, 3);
}

TEST(RunConfig, DefaultOutputDirectory) {
  RunConfig config = config_of("");
  config.ranks = 8;
  EXPECT_EQ(default_output_dir(config, 0), "runs/19700101-000000-convnet-n8");
}

}  // namespace
}  // namespace lockstep::trainers::run_config_test
