#include "trainers/config/run_request.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainers/options_of.h"
#include "trainers/config/config_from_flags.h"
#include "trainers/config/rank_machine.h"

namespace lockstep::trainers::run_request_test {
namespace {

using ::testing::HasSubstr;
using testing::options_of;
using testing::usage_error;
using testing::Variables;

RunRequest request_of(const std::string& line, const Variables& variables = {}) {
  return make_run_request(options_of(line, variables));
}

TEST(RunRequest, ATraceIsOfStepsCountedFrom1) {
  EXPECT_FALSE(request_of("").trace);
  const RunRequest request = request_of("--trace 20:30");
  EXPECT_EQ(request.trace->first, 20);
  EXPECT_EQ(request.trace->last, 30);
  EXPECT_EQ(request_of("--trace 5:5").trace->last, 5);
  const auto refusal = [](const std::string& line) {
    const auto error = usage_error([&] { request_of(line); });
    return error ? std::string(error->what()) : "nothing was refused";
  };
  for (const char* text : {"20", "0:3", "5:4", "a:b", ":", "1:", "-1:2", "1:9999999999999999999"}) {
    EXPECT_THAT(refusal(fmt::format("--trace={}", text)), HasSubstr("names no steps")) << text;
  }
  for (const char* output : {"--trace 1:2", "--csv c.csv", "--histograms 1"}) {
    EXPECT_THAT(refusal(fmt::format("{} -e --pretrained x.safetensors", output)),
                HasSubstr("and --evaluate contradict each other"))
        << output;
  }
}

TEST(RunRequest, TakesOverEveryValue) {
  const RunRequest request = request_of(
      "DIR --dataset mnist -a toy_net -j 3 --val-batch-size 7 --epochs 4 --max-steps 9 --lr 0.5 "
      "--momentum 0.8 --label-smoothing 0.1 --seed 5 --stall-abort 8 -o out "
      "--overwrite -p 6 --progress line -q --transport mpi --batches-per-allreduce 4");
  EXPECT_EQ(request.data, "DIR");
  EXPECT_EQ(request.dataset, "mnist");
  EXPECT_EQ(request.arch, "toy_net");
  EXPECT_EQ(request.workers, 3);
  EXPECT_EQ(request.test.batch, 7);
  EXPECT_EQ(request.epochs, 4);
  EXPECT_EQ(request.max_steps, 9);
  EXPECT_EQ(request.optimizer.lr, 0.5);
  EXPECT_EQ(request.optimizer.momentum, 0.8);
  EXPECT_EQ(request.loss.label_smoothing, 0.1);
  EXPECT_EQ(request.seeds.run, 5U);
  EXPECT_EQ(request.stall_abort_s, 8);
  EXPECT_EQ(request.output_dir, "out");
  EXPECT_TRUE(request.overwrite);
  EXPECT_EQ(request.print_freq, 6);
  EXPECT_EQ(request.progress, "line");
  EXPECT_TRUE(request.quiet);
  EXPECT_EQ(request.exchange.transport, comm::Transport::kMpi);
  EXPECT_EQ(request.exchange.algorithm, Algorithm::kTree);
  EXPECT_EQ(request.batch.micro_steps, 4);
  EXPECT_EQ(request.precision.level, OptLevel::kO0);
  EXPECT_EQ(request.device, Device::kCpu);
  EXPECT_FALSE(request.normalize);
}

TEST(RunRequest, TheLossIsOfASoftmaxUnlessAskedOtherwise) {
  EXPECT_FALSE(request_of("").loss.binary);
  for (const char* line : {"--loss bce", "--bce-loss"}) {
    EXPECT_TRUE(request_of(line).loss.binary) << line;
    EXPECT_EQ(request_of(line).loss.target_threshold, std::nullopt);
  }
  EXPECT_EQ(request_of("--loss bce --bce-target-thresh 0.2").loss.target_threshold, 0.2F);
  const auto error = usage_error([] { request_of("--bce-target-thresh 0.2"); });
  ASSERT_TRUE(error);
  EXPECT_STREQ(error->what(), "--bce-target-thresh would change nothing");
  EXPECT_TRUE(usage_error([] { request_of("--loss bce --bce-target-thresh 1.5"); }));
  EXPECT_TRUE(usage_error([] { request_of("--loss mse"); }));
}

TEST(RunRequest, WhatNeedsEvaluationsIsRefusedWithoutThem) {
  EXPECT_FALSE(request_of("").no_eval);
  EXPECT_TRUE(request_of("--no-eval").no_eval);
  for (const char* needs : {"--evaluate --pretrained F",
                            "--lr-scheduler plateau",
                            "--ema 0.9",
                            "--tta flip",
                            "--eval-freq 5"}) {
    const auto error = usage_error([&] { request_of(fmt::format("--no-eval {}", needs)); });
    ASSERT_TRUE(error) << needs;
    EXPECT_THAT(error->what(), HasSubstr("and --no-eval contradict each other"));
  }
}

TEST(RunRequest, DataSetWithoutDirectory) {
  EXPECT_EQ(request_of("").dataset, "digits");
  EXPECT_EQ(request_of("DIR").dataset, "auto");
  EXPECT_EQ(request_of("--dummy").dataset, "synthetic");
  const auto error = usage_error([] { request_of("--dataset mnist"); });
  ASSERT_TRUE(error);
  EXPECT_STREQ(error->what(), "--dataset mnist needs a data directory");
  const auto color = usage_error(
      [] { make_run_request(options_of("--dataset cifar10", {}, Program::kTrainResnet)); });
  ASSERT_TRUE(color);
  EXPECT_THAT(color->hint(), HasSubstr("--dataset shapes, which is built in"));
}

TEST(RunRequest, AConstantRateHasNoUpdates) {
  EXPECT_TRUE(usage_error([] { request_of("--no-sched-on-updates"); }));
  EXPECT_FALSE(usage_error([] { request_of("--no-sched-on-updates --warmup-epochs 1"); }));
}

TEST(RunRequest, ADirectoryBesideABuiltInDataSetIsRefused) {
  EXPECT_TRUE(usage_error([] { request_of("DIR --dataset digits"); }));
  const std::map<std::string, std::string> folder = {{"LOCKSTEP_DATA", "DIR"}};
  EXPECT_EQ(make_run_request(options_of("--dataset digits", folder)).dataset, "digits");
  EXPECT_TRUE(usage_error([] {
    make_run_request(options_of("", {{"LOCKSTEP_DATA", "DIR"}, {"LOCKSTEP_DATASET", "digits"}}));
  }));
}

TEST(RunRequest, ANameIsADirectoryInRuns) {
  EXPECT_EQ(make_run_request(options_of("--name first-try_2")).output_dir, "runs/first-try_2");
  const auto refused = [](const std::string& name) {
    const char* const arguments[] = {"--name", name.c_str()};
    const auto error = testing::usage_error([&] {
      make_run_request(read_options(Program::kTrainConvnet,
                                    std::vector<std::string>(arguments, arguments + 2),
                                    [](const char*) { return nullptr; }));
    });
    return error ? std::string(error->what()) : "accepted";
  };
  EXPECT_EQ(refused("<script>"), "accepted") << "a folder like any other";
  EXPECT_EQ(refused("a/b"), "bad value: --name a/b");
  EXPECT_EQ(refused(".."), "bad value: --name ..");
  EXPECT_EQ(refused("latest"), "bad value: --name latest");
  EXPECT_EQ(refused("\x1b[1m"), "bad value: --name \\x1b[1m");
  const auto both = testing::usage_error([] { make_run_request(options_of("--name a -o b")); });
  ASSERT_TRUE(both.has_value());
  EXPECT_EQ(std::string(both->what()), "--name a and --output-dir contradict each other");
}

TEST(RunRequest, HistogramsNeedEventFiles) {
  EXPECT_EQ(make_run_request(options_of("--histograms 5")).histograms, 5);
  EXPECT_TRUE(testing::usage_error([] {
                make_run_request(options_of("--histograms 5 --no-tensorboard"));
              }).has_value());
}

TEST(RunRequest, SyncBnIsOneGroup) {
  EXPECT_EQ(request_of("").batch.bn_groups, std::nullopt);
  EXPECT_EQ(request_of("--sync-bn").batch.bn_groups, 1);
  EXPECT_EQ(request_of("--sync-bn --bn-groups 1").batch.bn_groups, 1);
  EXPECT_TRUE(usage_error([] { request_of("--sync-bn --bn-groups 4"); }));
  EXPECT_EQ(request_of("--preset demo-ddp").batch.bn_groups, 1);
  EXPECT_EQ(request_of("--preset demo-ddp --bn-groups 4").batch.bn_groups, 4);
}

TEST(RunRequest, EnginesAreChosenOnCudaAlone) {
  for (const char* flag : {"--autotune", "--plan-file p.json"}) {
    const auto error = usage_error([&] { request_of(flag); });
    ASSERT_TRUE(error) << flag;
    EXPECT_THAT(error->what(), HasSubstr(" is for --device cuda"));
    EXPECT_THAT(error->hint(), HasSubstr("--device cuda"));
  }
  const RunRequest request = request_of("--device cuda --autotune --plan-file p.json");
  EXPECT_TRUE(request.autotune);
  EXPECT_EQ(request.plan_file, "p.json");
  EXPECT_FALSE(request_of("--device cuda").autotune);
}

TEST(RunRequest, PresetsKeepRawPixels) {
  for (const char* preset : {"demo-baseline", "demo-ddp", "ddp-tricks"}) {
    const RunRequest request = request_of(fmt::format("--preset {}", preset));
    ASSERT_TRUE(request.normalize) << preset;
    EXPECT_TRUE(request.normalize->mean.empty()) << preset;
  }
  EXPECT_FALSE(request_of("--preset demo-ddp --normalize dataset").normalize);
}

// 2^53 and the next number are one in doubles.
TEST(RunRequest, WholeNumbersBeyondTheirRangeAreRefusedExactly) {
  EXPECT_EQ(request_of("--seed 9007199254740992").seeds.run, 1ULL << 53U);
  for (const char* flag : {"--seed", "--seed-order", "--seed-weights"}) {
    for (const char* value : {"9007199254740993", "9223372036854775807", "9223372036854775808"}) {
      EXPECT_TRUE(usage_error([&] { request_of(fmt::format("{} {}", flag, value)); })) << value;
    }
  }
}

TEST(RunRequest, SeedsOfOrderAndWeightsFollowTheSeedUnlessGiven) {
  const RunRequest one = request_of("--seed 5");
  EXPECT_EQ(one.seeds.order, 5U);
  EXPECT_EQ(one.seeds.weights, 5U);
  const RunRequest apart = request_of("--seed 5 --seed-order 0 --seed-weights 42");
  EXPECT_EQ(apart.seeds.run, 5U);
  EXPECT_EQ(apart.seeds.order, 0U);
  EXPECT_EQ(apart.seeds.weights, 42U);
}

TEST(RunRequest, EarlyStoppingHasADelta) {
  EXPECT_EQ(request_of("").early_stopping.patience, 0);
  const RunRequest request = request_of("--early-stopping 3 --early-stopping-delta 0.5");
  EXPECT_EQ(request.early_stopping.patience, 3);
  EXPECT_EQ(request.early_stopping.delta, 0.5);
  for (const char* idle : {"--early-stopping-delta 0.5", "--no-early-stopping-best"}) {
    const auto error = usage_error([&] { request_of(idle); });
    ASSERT_TRUE(error) << idle;
    EXPECT_THAT(error->what(), HasSubstr("would change nothing"));
  }
  EXPECT_TRUE(request.early_stopping.last_may_be_best);
  EXPECT_FALSE(request_of("--preset ddp-tricks").early_stopping.last_may_be_best);
}

TEST(RunRequest, ImagesGrowFromOneSideDuringEpochs) {
  const auto request = [](const std::string& flags) {
    return make_run_request(options_of("DIR " + flags, {}, Program::kTrainResnet));
  };
  const data::CropRamp ramp =
      request("--res-from 160 --res-epochs 11:13 --train-crop-size 192").photos.train_ramp;
  EXPECT_EQ(ramp.from, 160);
  EXPECT_EQ(ramp.first, 11);
  EXPECT_EQ(ramp.last, 13);
  EXPECT_EQ(request("").photos.train_ramp.from, 0);
  const auto refusal = [&](const std::string& flags) {
    const auto error = testing::usage_error([&] { request(flags); });
    return error ? std::string(error->what()) : "accepted";
  };
  EXPECT_EQ(refusal("--res-from 160"), "--res-from and --res-epochs belong together");
  EXPECT_EQ(refusal("--res-epochs 1:2"), "--res-from and --res-epochs belong together");
  EXPECT_EQ(refusal("--res-from 256 --res-epochs 1:2"),
            "--res-from 256 is more than --train-crop-size 224");
  for (const char* epochs : {"2:1", "-1:2", "1", ":", "1:", "a:2", "1.5:2"}) {
    EXPECT_EQ(refusal(fmt::format("--res-from 160 --res-epochs={}", epochs)),
              fmt::format("--res-epochs {} names no epochs", epochs));
  }
  EXPECT_EQ(refusal("--dataset cifar10 --res-from 16 --res-epochs 1:2"),
            "--res-from is for photos in class folders");
}

TEST(RunRequest, NamesOfOutputsAreForAnEvaluation) {
  const auto resnet = [](const std::string& line) {
    return make_run_request(options_of(line, {}, Program::kTrainResnet)).class_names;
  };
  EXPECT_EQ(resnet("-e --pretrained F --class-names names.txt DIR"), "names.txt");
  const auto error = usage_error([&] { resnet("--class-names names.txt DIR"); });
  ASSERT_TRUE(error);
  EXPECT_STREQ(error->what(), "--class-names needs --evaluate");
}

TEST(RunRequest, LogitsAreThoseOfAnEvaluation) {
  EXPECT_EQ(request_of("").save_logits, "");
  EXPECT_EQ(request_of("-e --pretrained F --save-logits a/b.safetensors").save_logits,
            "a/b.safetensors");
  const auto refusal = [](const std::string& line) {
    const auto error = usage_error([&] { request_of(line); });
    return error ? std::string(error->what()) : "accepted";
  };
  EXPECT_EQ(refusal("--save-logits b.safetensors"), "--save-logits needs --evaluate");
  EXPECT_EQ(refusal("-e --pretrained F --save-logits b.pt"),
            "--save-logits b.pt names no .safetensors");
}

TEST(RunRequest, PhotosAreResizedAsAsked) {
  const auto photos = [](const std::string& flags) {
    return make_run_request(options_of("DIR " + flags, {}, Program::kTrainResnet)).photos;
  };
  EXPECT_EQ(photos("").val_by, data::Interpolation::kBilinear);
  EXPECT_EQ(photos("").train_by, data::Interpolation::kBilinear);
  const data::PhotoOptions both = photos("--interpolation bicubic --train-interpolation random");
  EXPECT_EQ(both.val_by, data::Interpolation::kBicubic);
  EXPECT_EQ(both.train_by, std::nullopt);
  const data::PhotoOptions crops = photos("--train-interpolation bicubic");
  EXPECT_EQ(crops.val_by, data::Interpolation::kBilinear);
  EXPECT_EQ(crops.train_by, data::Interpolation::kBicubic);
  for (const char* flag : {"--interpolation", "--train-interpolation"}) {
    EXPECT_TRUE(usage_error([&] { photos(fmt::format("{} nearest", flag)); }));
    const auto other_data = fmt::format("--dataset cifar10 {} bicubic", flag);
    const auto error = usage_error([&] { photos(other_data); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->what(), fmt::format("{} is for photos in class folders", flag));
  }
  EXPECT_TRUE(usage_error([&] { photos("--interpolation random"); })) << "tests draw nothing";
}

TEST(RunRequest, PresetBatchIsNoDemand) {
  const RunRequest request = request_of("--preset demo-baseline --global-batch-size 100");
  EXPECT_EQ(request.batch.per_rank, std::nullopt);
  EXPECT_EQ(request.batch.default_per_rank, 32);
  EXPECT_EQ(request_of("-b 5").batch.per_rank, 5);
  EXPECT_EQ(request_of("", {{"LOCKSTEP_BATCH_SIZE", "6"}}).batch.per_rank, 6);
}

TEST(ThreadsPerRank, FlagThenOpenMpThenShareOfCores) {
  const HostShare host = {.affinity_cores = 16, .host_cores = 16, .ranks_on_host = 4};
  EXPECT_EQ(threads_per_rank(3, "5", host), 3);
  EXPECT_EQ(threads_per_rank({}, "5", host), 5);
  EXPECT_EQ(threads_per_rank({}, "6,2", host), 6);
  EXPECT_EQ(threads_per_rank({}, "", host), 4);
  EXPECT_EQ(threads_per_rank({}, nullptr, host), 4);
  EXPECT_EQ(threads_per_rank({}, nullptr, {3, 16, 4}), 3);
  EXPECT_EQ(threads_per_rank({}, nullptr, {16, 2, 8}), 1);
  for (const char* bad : {"many", "0", "-2", ",", "1e3"}) {
    const auto error = usage_error([&] { threads_per_rank({}, bad, host); });
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

TEST(ResolvedRun, AStepIsAGraphWhereItNeedsNoHost) {
  RunRequest request = request_of("--device cuda");
  ResolvedRun run{.request = request};
  EXPECT_TRUE(run.runs_as_graph());
  run.batch = {.ranks = 2, .shards = 2, .bn_groups = 2};
  EXPECT_FALSE(run.runs_as_graph());
  run.transport = "nccl";
  EXPECT_TRUE(run.runs_as_graph());
  run.batch.micro_steps = 2;
  EXPECT_FALSE(run.runs_as_graph());
  EXPECT_FALSE(ResolvedRun{.request = request_of("")}.runs_as_graph());
  EXPECT_FALSE(ResolvedRun{.request = request_of("--device cuda --no-graph")}.runs_as_graph());
}

TEST(ResolvedRun, DefaultOutputDirectory) {
  EXPECT_EQ(default_output_dir("convnet", 8, {}), "runs/19700101-000000-convnet-n8");
}

}  // namespace
}  // namespace lockstep::trainers::run_request_test
