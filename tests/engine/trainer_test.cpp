// What users of the library do with a Trainer, rightly and wrongly.
#include "engine/trainer.h"

#include <cmath>
#include <limits>
#include <thread>

#include <gmock/gmock.h>

#include "comm/single.h"
#include "core/safetensors.h"
#include "nn/layers.h"
#include "nn/resnet.h"
#include "tests/engine/trainings.h"
#include "tests/support/temp_dir.h"

namespace lockstep::testing::trainer_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The library has no flags.
std::string refused(const TrainerOptions& options) {
  std::string text;
  try {
    comm::SingleCommunicator alone;
    train_digits(alone, options, 1);
  } catch (const UsageError& error) {
    text = format_error(error);
  }
  EXPECT_THAT(text, HasSubstr("\n  try: "));
  EXPECT_THAT(text, Not(HasSubstr("--")));
  return text;
}

TEST(Trainer, HasTheSameBitsOnOneTwoAndFourRanks) {
  const Trained one = train_on(1, short_options(), 4);
  EXPECT_FALSE(one.weights.empty());
  EXPECT_EQ(train_on(2, short_options(), 4), one);
  EXPECT_EQ(train_on(4, short_options(), 4), one);
  EXPECT_NE(train_on(1, short_options(), 3), one);
}

TEST(Trainer, OptionsThatDoNotFitAreRefused) {
  TrainerOptions options = short_options();
  options.batch = 0;
  EXPECT_THAT(refused(options), HasSubstr("batch is 0"));
  options = short_options();
  options.optimizer.momentum = 0;
  options.optimizer.nesterov = true;
  EXPECT_THAT(refused(options), HasSubstr("optimizer.momentum is 0"));
  options = short_options();
  options.batch = 10;  // no four equal groups
  EXPECT_THAT(refused(options), HasSubstr("batch 8 or 12"));
  options = short_options();
  options.shards = 3;
  EXPECT_THAT(refused(options), HasSubstr("batch_norm_groups must divide shards"));
  options = short_options();
  options.schedule = {.kind = ScheduleKind::kStep, .step_epochs = 0};
  EXPECT_THAT(refused(options), HasSubstr("schedule.step_epochs is 0"));
  options.schedule = {.kind = ScheduleKind::kMultiStep};
  EXPECT_THAT(refused(options), HasSubstr("schedule.kind multistep needs milestones"));
  options.schedule = {.kind = ScheduleKind::kOneCycle, .warmup_epochs = 1};
  EXPECT_THAT(refused(options), HasSubstr("contradict each other"));
  options = short_options();
  options.optimizer.lr = std::nan("");
  EXPECT_THAT(refused(options), HasSubstr("optimizer.lr is nan"));
  options = short_options();
  options.label_smoothing = 1;
  EXPECT_THAT(refused(options), HasSubstr("label_smoothing is 1"));
  options = short_options();
  options.precision.level = 4;
  EXPECT_THAT(refused(options), HasSubstr("precision.level 4"));
  options = short_options();
  options.precision.half = Dtype::kI32;
  refused(options);
  options = short_options();
  options.batch_norm_groups = 0;
  EXPECT_THAT(refused(options), HasSubstr("batch_norm_groups is 0"));
  options = short_options();
  options.shards = 0;
  EXPECT_THAT(refused(options), HasSubstr("shards is 0"));
  options = short_options();
  options.epochs = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(refused(options), HasSubstr("epochs is 9.22337e+18"));
}

// What they refuse costs the machine's threads and memory, or trains nothing.
TEST(Trainer, HasTheLimitsOfThePrograms) {
  const auto refused_with = [](auto&& change) {
    TrainerOptions options = short_options();
    change(options);
    return refused(options);
  };
  static constexpr int64_t kHuge = int64_t{1} << 62;
  EXPECT_THAT(refused_with([](TrainerOptions& o) { o.batch = kHuge; }), HasSubstr("batch is"));
  EXPECT_THAT(refused_with([](TrainerOptions& o) { o.test_batch = kHuge; }),
              HasSubstr("test_batch is"));
  EXPECT_THAT(refused_with([](TrainerOptions& o) { o.rank.threads = 1 << 30; }),
              HasSubstr("rank.threads is"));
  EXPECT_THAT(refused_with([](TrainerOptions& o) { o.rank.workers = 1 << 30; }),
              HasSubstr("rank.workers is"));
  for (const double lr : {1e300, 1e-320}) {
    EXPECT_THAT(refused_with([&](TrainerOptions& o) { o.optimizer.lr = lr; }),
                HasSubstr("optimizer.lr is"));
  }
  EXPECT_THAT(refused_with([](TrainerOptions& o) { o.optimizer.weight_decay = 1e-320; }),
              HasSubstr("optimizer.weight_decay is"));
  EXPECT_THAT(refused_with([](TrainerOptions& o) { o.optimizer.momentum = 1e30; }),
              HasSubstr("optimizer.momentum is"));
  EXPECT_THAT(refused_with([](TrainerOptions& o) { o.schedule.warmup_epochs = kHuge; }),
              HasSubstr("schedule.warmup_epochs is"));
  EXPECT_THAT(refused_with([](TrainerOptions& o) { o.shards = kHuge; }), HasSubstr("shards is"));
}

TEST(Trainer, NeedsBothDataSets) {
  error_of<UsageError>([] {
    comm::SingleCommunicator alone;
    Mt19937 rng(1);
    nn::ConvNet network(nn::Init{rng});
    const Trainer trainer(alone, network, data::open_digits(data::Splits::kTest), {});
  });
}

TEST(Trainer, ANetworkForOtherImagesIsAShapeErrorWithTheImages) {
  comm::SingleCommunicator alone;
  Mt19937 rng(1);
  nn::ConvNet network(nn::Init{rng});  // for gray images of 28 x 28
  Trainer trainer(alone, network, data::open_shapes(), short_options());
  error_of<ShapeError>([&] { trainer.step(); });
  error_of<ShapeError>([&] { trainer.evaluate(); });
}

TEST(Trainer, ALabelWithoutAnOutputIsADataError) {
  comm::SingleCommunicator alone;
  Mt19937 rng(1);
  nn::ResNet network(nn::Init{rng}, 18, {.classes = 4, .cifar_stem = true});
  Trainer trainer(alone, network, data::open_shapes(), short_options());
  error_of<DataError>([&] { trainer.step(); });
}

// The first 32 of the digits.
class FewDigits : public data::Digits {
 public:
  FewDigits() : Digits(Split::kTrain) {}
  int64_t size() const override { return 32; }
};

TEST(Trainer, NoStepIsLeftAfterTheEnd) {
  comm::SingleCommunicator alone;
  Mt19937 rng(42);
  nn::ConvNet network(nn::Init{rng});
  const auto few = std::make_shared<FewDigits>();
  Trainer trainer(alone, network, {.train = few, .test = few}, short_options());
  EXPECT_EQ(trainer.steps_per_epoch(), 2);
  int reports = 0;
  trainer.run([&](const StepReport& report) {
    EXPECT_EQ(report.ends_epoch, report.step == 2);
    ++reports;
    return true;
  });
  EXPECT_EQ(reports, 2);
  EXPECT_EQ(trainer.steps(), trainer.end());
  const std::vector<float> weights = weights_of(network);
  EXPECT_THAT(error_of<UsageError>([&] { trainer.step(); }), HasSubstr("no step is left"));
  EXPECT_EQ(weights_of(network), weights);
  EXPECT_EQ(trainer.evaluate().images, 32);
}

TEST(Trainer, LoadsWhatItSavedAndRefusesOtherFiles) {
  const TempDir dir;
  const auto file = dir / "weights.safetensors";
  spawn(2, [&](Communicator& peers) {
    Mt19937 rng(42);
    nn::ConvNet network(nn::Init{rng});
    Trainer trainer(peers, network, data::open_digits(), short_options());
    trainer.step();
    trainer.save(file);
    const std::vector<float> saved = weights_of(network);
    trainer.step();
    EXPECT_NE(weights_of(network), saved);
    trainer.load(file);
    EXPECT_EQ(weights_of(network), saved);
    write_text(dir / "junk", "no weights");
    EXPECT_THAT(error_of<CheckpointError>([&] { trainer.load(dir / "junk"); }),
                Not(HasSubstr("the network that the file was made with")));
    EXPECT_EQ(read_safetensors(file).metadata.at("format_version"), "1.0");
  });
  spawn(2, [&](Communicator& peers) {
    Mt19937 rng(42);
    nn::ToyNet network(nn::Init{rng});
    Trainer trainer(peers, network, data::open_digits(), short_options());
    EXPECT_THAT(error_of<CheckpointError>([&] { trainer.load(file); }), HasSubstr("does not fit"));
  });
}

// One layer under two names, and names that no file of weights could hold.
class Named : public nn::Module {
 public:
  Named(const nn::Init& init, const std::string& first, const std::string& second, bool same)
      : layer_(init, 784, 10), other_(init, 784, 10) {
    register_module(first, layer_);
    register_module(second, same ? layer_ : other_);
  }
  Var forward(const Var& x) override { return layer_.forward(x); }

 private:
  nn::Linear layer_, other_;
};

TEST(Trainer, ALayerWithTwoNamesIsTrainedOnce) {
  comm::SingleCommunicator alone;
  const auto trained = [&](nn::Module& network) {
    Trainer trainer(alone, network, data::open_digits(), short_options());
    trainer.step();
    trainer.step();
    std::vector<float> weights = weights_of(network);
    weights.resize(7850);
    return weights;
  };
  Mt19937 rng(1);
  Named twice(nn::Init{rng}, "a", "b", true);
  EXPECT_EQ(twice.parameters().size(), 2U);
  EXPECT_EQ(twice.state().size(), 4U);
  Mt19937 again(1);
  nn::Linear once(nn::Init{again}, 784, 10);
  class Flat : public nn::Module {
   public:
    explicit Flat(nn::Linear& layer) : layer_(layer) { register_module("a", layer); }
    Var forward(const Var& x) override { return layer_.forward(x); }

   private:
    nn::Linear& layer_;
  };
  Flat flat(once);
  EXPECT_EQ(trained(twice), trained(flat));
}

TEST(Trainer, NamesAreThoseThatFilesCanHold) {
  Mt19937 rng(1);
  const nn::Init init{rng};
  EXPECT_THAT(error_of<UsageError>([&] { Named(init, "a b", "c", false); }), HasSubstr("'a b'"));
  EXPECT_THAT(error_of<UsageError>([&] { Named(init, "a", "a", false); }), HasSubstr("two parts"));
}

TEST(Trainer, FrozenParametersStayAndOthersLearn) {
  comm::SingleCommunicator alone;
  Mt19937 rng(42);
  nn::ConvNet network(nn::Init{rng});
  for (nn::NamedParameter& parameter : network.named_parameters()) {
    parameter.var.set_requires_grad(parameter.name.starts_with("fc."));
  }
  const std::vector<float> before = weights_of(network);
  Trainer trainer(alone, network, data::open_digits(), short_options());
  trainer.step();
  const std::vector<float> after = weights_of(network);
  const auto classifier = static_cast<std::ptrdiff_t>(32 * 7 * 7 * 10 + 10);
  const std::ptrdiff_t body = std::ssize(before) - classifier;
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + body, after.begin()));
  EXPECT_FALSE(std::equal(before.begin() + body, before.end(), after.begin() + body));
}

TEST(Trainer, BiasesLearnBesideFrozenWeights) {
  comm::SingleCommunicator alone;
  Mt19937 rng(42);
  nn::ConvNet network(nn::Init{rng});
  for (nn::NamedParameter& parameter : network.named_parameters()) {
    parameter.var.set_requires_grad(parameter.name == "fc.bias");
  }
  const std::vector<float> before = weights_of(network);
  Trainer trainer(alone, network, data::open_digits(), short_options());
  trainer.step();
  const std::vector<float> after = weights_of(network);
  EXPECT_TRUE(std::equal(before.begin(), before.end() - 10, after.begin()));
  for (auto bias = before.size() - 10; bias < before.size(); ++bias) {
    EXPECT_NE(before[bias], after[bias]);
  }
}

// Statistics over both ranks, though each has groups of its own.
TEST(Trainer, ConvertedNormsNeedNoOption) {
  const auto train = [](int ranks, bool converts) {
    std::vector<float> weights;
    spawn(ranks, [&](Communicator& peers) {
      Mt19937 rng(42);
      nn::ConvNet network(nn::Init{rng});
      if (converts) nn::convert_sync_batchnorm(network);
      Trainer trainer(peers, network, data::open_digits(), short_options());
      trainer.step();
      if (peers.rank() == 0) weights = weights_of(network);
    });
    return weights;
  };
  EXPECT_EQ(train(2, true), train(1, true));
  EXPECT_NE(train(1, true), train(1, false));
}

TEST(Trainer, PrintsNothing) {
  const TempDir dir;
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  spawn(2, [&](Communicator& peers) {
    Mt19937 rng(42);
    nn::ConvNet network(nn::Init{rng});
    TrainerOptions options = short_options();
    options.precision.level = 2;
    options.test_batch = 1000;
    Trainer trainer(peers, network, data::open_digits(), options);
    for (int i = 0; i < 3; ++i) trainer.step();
    trainer.evaluate();
    trainer.save(dir / "weights.safetensors");
    try {
      trainer.load(dir / "absent");
    } catch (const Error&) {
    }
  });
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(Trainer, WarnsOfASkippedStepAndReportsIt) {
  std::vector<std::string> warnings;
  int64_t skipped = 0;
  spawn(1, [&](Communicator& peers) {
    Mt19937 rng(42);
    nn::ConvNet network(nn::Init{rng});
    TrainerOptions options = short_options();
    options.precision.level = 2;
    options.warn = [&](const std::string& text) { warnings.push_back(text); };
    for (const nn::NamedParameter& parameter : network.named_parameters()) {
      if (parameter.name != "fc.weight") continue;
      Tensor weights = parameter.var.value();
      for (float& weight : weights.span<float>()) weight *= 1000;  // 16-bit gradients overflow
    }
    Trainer trainer(peers, network, data::open_digits(), options);
    for (int i = 0; i < 3; ++i) skipped += trainer.step().skipped ? 1 : 0;
  });
  ASSERT_GT(skipped, 0);
  ASSERT_EQ(std::ssize(warnings), skipped);
  EXPECT_TRUE(warnings[0].starts_with("Gradient overflow.  Skipping step, ")) << warnings[0];
}

TEST(Trainer, TwoWithOtherSettingsSideBySideHaveTheBitsOfEachAlone) {
  TrainerOptions other = short_options();
  other.batch = 32;
  other.optimizer = {.kind = OptimizerKind::kAdam, .lr = 0.001};
  other.seed = 7;
  other.rank.threads = 2;
  const Trained first_alone = train_on(2, short_options(), 4);
  const Trained second_alone = train_on(2, other, 3);
  Trained first;
  std::thread beside([&] { first = train_on(2, short_options(), 4); });
  const Trained second = train_on(2, other, 3);
  beside.join();
  EXPECT_EQ(first, first_alone);
  EXPECT_EQ(second, second_alone);
  EXPECT_NE(first.weights, second.weights);
}

TEST(Trainer, TwoOnOneCommunicatorInTurnHaveTheBitsOfEachAlone) {
  TrainerOptions other = short_options();
  other.seed = 7;
  const Trained first_alone = train_on(2, short_options(), 3);
  const Trained second_alone = train_on(2, other, 3);
  spawn(2, [&](Communicator& peers) {
    Mt19937 first_rng(42);
    nn::ConvNet first(nn::Init{first_rng});
    Trainer first_trainer(peers, first, data::open_digits(), short_options());
    Mt19937 second_rng(42);
    nn::ConvNet second(nn::Init{second_rng});
    Trainer second_trainer(peers, second, data::open_digits(), other);
    for (int i = 0; i < 3; ++i) {
      first_trainer.step();
      second_trainer.step();
    }
    EXPECT_EQ(weights_of(first), first_alone.weights);
    EXPECT_EQ(weights_of(second), second_alone.weights);
  });
}

}  // namespace
}  // namespace lockstep::testing::trainer_test
