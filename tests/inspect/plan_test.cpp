// lockstep plan: what it derives from a step on the dry device about memory, traffic and speed.
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "core/cuda/device.h"
#include "engine/state/snapshot.h"
#include "inspect/cli/lockstep_tool.h"
#include "inspect/plan/gpu_card.h"
#include "inspect/plan/plan_command.h"
#include "inspect/plan/training_plan.h"
#include "tests/support/temp_dir.h"
#include "trainers/model/models.h"

namespace lockstep::trainers::plan_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const PrecisionConfig kO2{.level = OptLevel::kO2};

constexpr double as_double(int64_t value) {
  return static_cast<double>(value);
}

DryStep resnet50(int64_t images) {
  return run_dry_step(usual_network("resnet50"), images, kO2);
}

double images_per_s(const DryStep& step, double seconds) {
  return static_cast<double>(step.images) / seconds;
}

TEST(DryStep, KnowsFrozenFiltersAndLayersWithoutParameters) {
  const DryStep f32 = run_dry_step(usual_network("airbench94"), 64, {});
  const DryStep o2 = run_dry_step(usual_network("airbench94"), 64, kO2);
  EXPECT_EQ(f32.parameters, 1971352);
  EXPECT_GT(f32.memory.parameters, (f32.parameters + 24 * 12) * 4) << "frozen ones too";
  EXPECT_LT(f32.memory.gradients, f32.parameters * 4 + 4096) << "none of frozen ones";
  EXPECT_GT(o2.memory.copies, 1'900'000 * 2);
  EXPECT_LT(o2.memory.activations, 0.7 * as_double(f32.memory.activations));
  for (const char* name : {"0", "2.conv1", "4.norm2", "gelu", "7", "scale"}) {
    const auto layer = std::ranges::find(f32.layers, name, &LayerCost::name);
    ASSERT_NE(layer, f32.layers.end()) << name;
    EXPECT_GT(layer->bytes, 0) << name;
  }
}

// Published speeds of training ResNet-50 on one card with 16-bit convolutions, in images per
// second. Sources: NVIDIA DeepLearningExamples (A100: MXNet 2,180, PaddlePaddle 2,711); MLPerf
// Training v4.0 and v3.0 results (A100 3,574, H100 7,162, H200 7,950).
struct Published {
  const char* card;
  double slowest, fastest;
};

TEST(StepPrediction, PublishedSpeedsLieBetweenPlainAndDeepestFusion) {
  const DryStep step = resnet50(256);
  for (const Published& known : {Published{"a100", 2180, 3574},
                                 Published{"h100", 7162, 7162},
                                 Published{"h200", 7950, 7950}}) {
    const GpuCard card = find_gpu(known.card);
    const SchemePrediction plain = predict(step, Scheme::kUnfused, card, kO2);
    const SchemePrediction deepest = predict(step, Scheme::kStatsInConvolutions, card, kO2);
    EXPECT_LT(images_per_s(step, plain.predicted_s), known.slowest) << known.card;
    EXPECT_GT(images_per_s(step, deepest.limit_s), known.fastest) << known.card;
  }
}

// The roofline model for 224x224 images in f16 gives 474, 346 and 295 MB per image. The tape moves
// 10 MB more than the second figure (tests/nn/traffic_test.cpp).
TEST(StepPrediction, TrafficIsTheModels) {
  const DryStep step = resnet50(256);
  const auto megabytes = [&](Scheme scheme) {
    return predict(step, scheme, find_gpu("h200"), kO2).bytes / 1e6 / 256;
  };
  EXPECT_NEAR(megabytes(Scheme::kFusedBatchNorm), 356, 5);
  EXPECT_NEAR(megabytes(Scheme::kUnfused), 474, 0.05 * 474);
  EXPECT_NEAR(megabytes(Scheme::kStatsInConvolutions), 356 - (346 - 295), 8);
}

TEST(StepPrediction, FlopsAreThoseOfTheNetwork) {
  const DryStep step = resnet50(64);
  const SchemePrediction p = predict(step, Scheme::kFusedBatchNorm, find_gpu("h200"), kO2);
  EXPECT_NEAR(p.compute_s * 989e12 * 0.8 / 64 / 1e9, 24.3, 0.2);
  EXPECT_GE(p.limit_s, std::max(p.traffic_s, p.compute_s));
}

TEST(StepPrediction, EachOpTakesALaunch) {
  const DryStep tiny = run_dry_step(usual_network("resnet20"), 1, kO2);
  const SchemePrediction p = predict(tiny, Scheme::kFusedBatchNorm, find_gpu("b200"), kO2);
  EXPECT_GT(p.predicted_s, 1e-6 * static_cast<double>(tiny.ledger.size()));
}

TEST(StepPrediction, AllReduceFollowsAlphaBeta) {
  const GpuCard card = find_gpu("a100");
  EXPECT_EQ(all_reduce_s(1 << 20, 1, card), 0);
  EXPECT_DOUBLE_EQ(all_reduce_s(0, 8, card), 38e-6);
  EXPECT_NEAR(all_reduce_s(240'000'000, 2, card), 38e-6 + 1e-3, 1e-9);
}

TEST(DryStep, CountsWhatTensorsTake) {
  const DryStep step = resnet50(32);
  constexpr int64_t kParameters = 25'557'032;
  constexpr int64_t kRounding = 1 << 20;
  EXPECT_EQ(step.parameters, kParameters);
  EXPECT_NEAR(as_double(step.memory.gradients), 4.0 * kParameters, as_double(kRounding));
  EXPECT_NEAR(as_double(step.memory.optimizer), as_double(4 * kParameters), as_double(kRounding));
  EXPECT_NEAR(as_double(step.memory.parameters),
              as_double(4 * (kParameters + 2 * 26'560)),
              as_double(kRounding));
  EXPECT_NEAR(as_double(step.memory.copies), as_double(2 * kParameters), as_double(kRounding));
  EXPECT_GT(step.memory.made, step.memory.activations);
  EXPECT_LT(step.memory.made, step.memory.activations * 11 / 10);
  EXPECT_GT(step.memory.placed, step.memory.made);
  EXPECT_LT(step.memory.placed, step.memory.made * 26 / 25);
  EXPECT_EQ(resnet50(32).memory.placed, step.memory.placed);  // nothing is left over
}

TEST(DryStep, TheCopyThatIsSavedHasTheSizeOfASnapshot) {
  const ModelOptions network = usual_network("resnet20");
  const DryStep step = run_dry_step(network, 8, kO2);
  Stream stream;
  Mt19937 rng(1);
  const std::unique_ptr<nn::Module> model = make_model(network, nn::Init{rng});
  const nn::Sgd optimizer(model->named_parameters(), {.momentum = 0.9F});
  Snapshot snapshot;
  reserve_memory({stream, *model, optimizer}, snapshot);
  const auto bytes = as_double(snapshot.memory.numel());
  EXPECT_NEAR(as_double(step.memory.saved()), bytes, 0.05 * bytes);
}

TEST(DryStep, AveragesMixesAndScalesGradientsWhereAsked) {
  const ModelOptions network = usual_network("resnet20");
  const DryStep plain = run_dry_step(network, 8, kO2);
  const DryStep step = run_dry_step(
      network,
      8,
      kO2,
      {.mixup = true,
       .optimizer = {.lr = 0.1, .momentum = 0.9, .larc = nn::LarcParams{}, .ema = 0.9999}});
  const auto calls = [](const DryStep& of, std::string_view op) {
    return std::ranges::count(of.ledger, op, &LedgerEntry::op);
  };
  for (const char* op : {"tensor_norms", "larc_factors", "mix_images", "ema_update"}) {
    EXPECT_EQ(calls(plain, op), 0) << op;
    EXPECT_EQ(calls(step, op), 1) << op;
  }
  EXPECT_EQ(step.ledger.size(), plain.ledger.size() + 4);
  EXPECT_EQ(plain.memory.average, 0);
  EXPECT_NEAR(as_double(step.memory.average), as_double(step.memory.parameters), 4096);
  EXPECT_GE(step.memory.needed(), plain.memory.needed() + step.memory.average);
}

TEST(DryStep, LayersShareOutTheLedger) {
  const DryStep step = resnet50(2);
  int64_t of_layers = 0;
  for (const LayerCost& layer : step.layers) of_layers += layer.bytes;
  int64_t of_network = 0;
  for (const LedgerEntry& entry : step.ledger) {
    if (entry.op != "sgd_step") of_network += entry.bytes;
  }
  EXPECT_EQ(of_layers, of_network);
  const auto flops = [&](std::string_view name) {
    const auto found = std::ranges::find(step.layers, name, &LayerCost::name);
    return found == step.layers.end() ? -1 : found->flops;
  };
  // Neither the stem's images nor anything before them needs a gradient.
  EXPECT_EQ(flops("conv1"), int64_t{2} * 2 * 2 * 64 * 112 * 112 * 3 * 49);
  constexpr int64_t kElements = int64_t{2} * 256 * 14 * 14;
  EXPECT_EQ(flops("layer3.2.conv2"), 3 * 2 * kElements * 256 * 9);
  EXPECT_EQ(flops("fc"), int64_t{3} * 2 * 2 * 1000 * 2048);
}

TEST(DryStep, ActivationsGrowWithTheBatchAndHalveIn16Bits) {
  const int64_t one = resnet50(32).memory.activations;
  EXPECT_NEAR(as_double(resnet50(64).memory.activations), 2 * as_double(one), as_double(one / 50));
  const DryStep f32 = run_dry_step(usual_network("resnet50"), 32, {});
  EXPECT_NEAR(as_double(f32.memory.activations), 2 * as_double(one), as_double(one / 10));
  EXPECT_EQ(f32.memory.copies, 0);
}

TEST(TrainingPlan, LargestBatchIsTheLastThatFits) {
  TrainingPlan plan{.card = find_gpu("a100"), .precision = kO2};
  const auto of = [&](int64_t images) {
    plan.step = resnet50(images);
    plan.other_step = resnet50(2 * images);
    return plan;
  };
  const int64_t largest = of(256).largest_batch();
  EXPECT_LE(of(largest).needed_bytes(), plan.card.memory_bytes);
  EXPECT_GT(of(largest + largest / 50).needed_bytes(), plan.card.memory_bytes);
  EXPECT_NEAR(as_double(of(2 * largest).largest_batch()), as_double(largest), 8);
}

TEST(PlanCommand, SaysWhatItKnowsAndThatItPredicts) {
  const std::string text =
      plan_training({.gpu = "b200", .ranks = 4, .training = {"-a", "resnet20", "-b", "128"}});
  EXPECT_THAT(
      text,
      AllOf(HasSubstr("resnet20, 269722 parameters, 128 images per rank, O2 f16, on 4 x B200"),
            HasSubstr("largest batch that fits"),
            HasSubstr("page-locked on rank 0's host, for saving"),
            HasSubstr("in /dev/shm of a host (--keep-in-memory)"),
            HasSubstr("predicted, not measured"),
            HasSubstr("\"stats in convolutions\" in layers that --autotune fuses"),
            HasSubstr("  4 ranks"),
            HasSubstr("conv2d_backward_weight"),
            HasSubstr("backward weight f16 128x")));
}

TEST(PlanCommand, PlansForAnyNumberOfRanksAndOneImage) {
  const std::string text = plan_training({.ranks = 6, .training = {"-a", "resnet20", "-b", "1"}});
  for (const char* ranks : {"  1 rank ", "  4 ranks", "  6 ranks"}) {
    EXPECT_THAT(text, HasSubstr(ranks));
  }
}

// Sums of earlier micro-steps wait on the device; the ranks exchange gradients once.
TEST(PlanCommand, CountsWhatAccumulationKeepsAndSaves) {
  const auto plan = [](const char* micro_steps) {
    return nlohmann::json::parse(plan_training(
        {.json = true,
         .training = {"-a", "resnet18", "-b", "64", "--batches-per-allreduce", micro_steps}}));
  };
  const auto one = plan("1"), eight = plan("8");
  const int64_t gradients = 4 * one.at("parameters").get<int64_t>();
  EXPECT_GT(eight.at("needed_bytes").get<int64_t>(),
            one.at("needed_bytes").get<int64_t>() + 2 * gradients);
  EXPECT_GT(eight.at("efficiency").get<double>(), one.at("efficiency").get<double>());
  EXPECT_GT(eight.at("images_per_s").get<double>(), one.at("images_per_s").get<double>());
}

TEST(PlanCommand, WritesJson) {
  const auto json = nlohmann::json::parse(plan_training(
      {.gpu = "h200", .ranks = 4, .json = true, .training = {"-a", "resnet20", "-b", "128"}}));
  EXPECT_GT(json.at("images_per_s").get<double>(), 0);
  EXPECT_TRUE(json.at("fits").get<bool>());
  EXPECT_EQ(json.at("ranks"), 4);
  EXPECT_EQ(json.at("batch_size"), 128);
  EXPECT_EQ(json.at("dtype"), "f16");
}

TEST(PlanCommand, TakesFlagsOfTraining) {
  const auto plan = [](std::vector<const char*> flags) {
    std::vector<const char*> line = {"lockstep", "plan", "-a", "resnet20", "-b", "8"};
    line.insert(line.end(), flags.begin(), flags.end());
    std::ostringstream out, err;
    run_lockstep_tool(static_cast<int>(line.size()), line.data(), out, err);
    return out.str() + err.str();
  };
  EXPECT_THAT(plan({}), Not(HasSubstr("--ema")));
  EXPECT_THAT(plan({"--model-ema", "--mixup-alpha=0.2", "--larc", "--no-larc-clip"}),
              AllOf(HasSubstr("average of parameters and buffers (--ema)"),
                    HasSubstr("  mix_images"),
                    HasSubstr("  larc_factors")));
  EXPECT_THAT(plan({"--ema", "1"}), HasSubstr("--ema 1 averages nothing"));
  EXPECT_THAT(plan({"--mixup", "much"}), HasSubstr("--mixup"));
  EXPECT_THAT(plan({"--weight-decay", "0.1"}), HasSubstr("does not look at --weight-decay"));
  EXPECT_THAT(plan({"--dataset", "cifar10"}), HasSubstr("--dataset"));
  EXPECT_NE(plan({"--opt", "muon", "--muon-dtype", "bf16"}), plan({"--opt", "muon"}));
  EXPECT_THAT(plan({"--opt", "lamb"}),
              AllOf(HasSubstr("optimizer state (lamb)"),
                    HasSubstr("  adam_step"),
                    HasSubstr("  larc_factors")));
}

TEST(PlanCommand, TakesARecipe) {
  const auto plan = [](const std::vector<std::string>& flags) {
    return plan_training({.training = flags});
  };
  // 2,048 images of 160 pixels on 8 ranks, with autocast.
  EXPECT_THAT(plan({"--preset", "rsb-a3"}),
              AllOf(HasSubstr("resnet50, 25557032 parameters, 256 images per rank, O1 f16"),
                    HasSubstr("optimizer state (lamb)"),
                    HasSubstr("256x3x160x160")));
  EXPECT_THAT(plan({"--preset", "cifar-94", "-b", "64", "--opt-level", "O2"}),
              HasSubstr("64 images per rank, O2 f16"));
  EXPECT_THAT(plan({"-a", "convnet", "-b", "32"}), HasSubstr("32 images per rank, O2 f16"));
}

TEST(FindGpu, ReadsACardsOwnDescription) {
  const testing::TempDir folder;
  const std::string path = (folder.path() / "card.json").string();
  std::ofstream(path) << R"({"deviceName": "NVIDIA H200 NVL", "multiProcessorCount": 114})";
  const GpuCard card = find_gpu(path);
  EXPECT_EQ(card.name, "H200");
  EXPECT_EQ(card.multiprocessors, 114);
  EXPECT_THAT(card.cudnn_properties, HasSubstr("NVIDIA H200 NVL"));
}

TEST(DescribeGpu, SaysWhyItCannot) {
  if (cuda::visible_devices() > 0) GTEST_SKIP() << "there is one";
  const std::array arguments = {"lockstep", "describe-gpu"};
  std::ostringstream out, err;
  EXPECT_EQ(run_lockstep_tool(arguments.size(), arguments.data(), out, err), 5);
  EXPECT_THAT(err.str(), AllOf(HasSubstr("\n  why: "), HasSubstr("\n  try: ")));
}

TEST(FindGpu, RefusesWhatItDoesNotKnow) {
  EXPECT_THROW(find_gpu("h2000"), UsageError);
  const testing::TempDir folder;
  const std::string path = (folder.path() / "card.json").string();
  std::ofstream(path) << "{}";
  EXPECT_THROW(find_gpu(path), EnvironmentError);
  std::ofstream(path) << R"({"deviceName": "NVIDIA GeForce RTX 2080"})";
  EXPECT_THROW(find_gpu(path), UsageError);
  std::ofstream(path) << R"({"deviceName": "NVIDIA H200", "totalGlobalMem": "big"})";
  EXPECT_THROW(find_gpu(path), EnvironmentError);
  EXPECT_THROW(find_gpu(folder.path().string()), UsageError) << "a folder is no card's file";
}

}  // namespace
}  // namespace lockstep::trainers::plan_test
