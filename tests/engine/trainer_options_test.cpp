// A Trainer's optimizers, schedules, image options and hooks.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "comm/single.h"
#include "core/safetensors.h"
#include "core/timeline.h"
#include "engine/settings/usual_images.h"
#include "engine/update/schedule.h"
#include "tests/engine/trainings.h"
#include "tests/support/close.h"
#include "tests/support/temp_dir.h"

namespace lockstep::testing::trainer_options_test {
namespace {

using ::testing::HasSubstr;

class FirstDigits : public data::Digits {
 public:
  FirstDigits(Split split, int64_t size) : Digits(split), size_(size) {}
  int64_t size() const override { return size_; }

 private:
  const int64_t size_;
};

data::DatasetPair first_digits() {
  return {.train = std::make_shared<FirstDigits>(data::Digits::Split::kTrain, 64),
          .test = std::make_shared<FirstDigits>(data::Digits::Split::kTest, 16)};
}

// A ConvNet, the same each time, and 64 digits: four steps an epoch.
struct Digits {
  Digits() : network(nn::Init{rng}) {}

  Trainer trainer(const TrainerOptions& options, const TrainerHooks& hooks = {}) {
    return Trainer(alone, network, first_digits(), options, hooks);
  }

  comm::SingleCommunicator alone;
  Mt19937 rng{42};
  nn::ConvNet network;
};

TEST(TrainerOptions, EachOptimizerHasTheSameBitsOnOneAndTwoRanks) {
  for (const OptimizerKind kind :
       {OptimizerKind::kAdam, OptimizerKind::kAdamW, OptimizerKind::kMuon, OptimizerKind::kLamb}) {
    TrainerOptions options = short_options();
    options.optimizer = {.kind = kind, .lr = 0.002, .momentum = 0.9, .weight_decay = 1e-4};
    const Trained one = train_on(1, options, 3);
    EXPECT_EQ(train_on(2, options, 3), one) << static_cast<int>(kind);
    EXPECT_NE(one, train_on(1, short_options(), 3)) << static_cast<int>(kind);
  }
}

TEST(TrainerOptions, EachScheduleSetsItsRates) {
  for (const ScheduleKind kind : {ScheduleKind::kMultiStep,
                                  ScheduleKind::kCosine,
                                  ScheduleKind::kLinear,
                                  ScheduleKind::kPoly,
                                  ScheduleKind::kOneCycle,
                                  ScheduleKind::kTriangular}) {
    TrainerOptions options = short_options();
    options.epochs = 2;
    options.schedule = {.kind = kind, .milestones = {1}, .power = 2};
    Digits digits;
    Trainer trainer = digits.trainer(options);
    const Schedule want(options.schedule, options.optimizer.lr, 2, trainer.steps_per_epoch());
    trainer.run([&](const StepReport& report) {
      EXPECT_EQ(report.lr, want.lr(report.step - 1)) << static_cast<int>(kind);
      return report.step < trainer.steps_per_epoch() + 2;
    });
  }
}

// No evaluation is better than the first by half.
TEST(TrainerOptions, APlateauGoesByTheEvaluationsAtEndsOfEpochs) {
  TrainerOptions options = short_options();
  options.epochs = 4;
  options.schedule = {
      .kind = ScheduleKind::kPlateau, .gamma = 0.5, .plateau = {.patience = 0, .threshold = 0.5}};
  Digits digits;
  Trainer trainer = digits.trainer(options);
  std::vector<double> rates;
  trainer.run([&](const StepReport& report) {
    if (!report.ends_epoch) return true;
    rates.push_back(report.lr);
    trainer.evaluate();
    trainer.evaluate();  // once more is no other epoch
    return true;
  });
  EXPECT_THAT(rates, ::testing::ElementsAre(0.02, 0.02, 0.01, 0.005));
}

TEST(TrainerOptions, AnAverageIsEvaluatedAndSavedOnRequest) {
  const TempDir dir;
  TrainerOptions options = short_options();
  options.optimizer.ema = 0.9;
  Digits digits;
  Trainer trainer = digits.trainer(options);
  for (int i = 0; i < 3; ++i) trainer.step();
  const std::vector<float> trained = weights_of(digits.network);
  std::vector<float> average;
  trainer.with_average([&] {
    average = weights_of(digits.network);
    trainer.save(dir / "average.safetensors");
  });
  EXPECT_NE(average, trained);
  EXPECT_EQ(weights_of(digits.network), trained);
  trainer.load(dir / "average.safetensors");
  EXPECT_EQ(weights_of(digits.network), average);
  Digits plain;
  Trainer without = plain.trainer(short_options());
  EXPECT_THAT(error_of<UsageError>([&] { without.with_average([] {}); }),
              HasSubstr("no moving average"));
}

TEST(TrainerOptions, LogitsAreThoseOfAllTestImagesOnAnyNumberOfRanks) {
  const auto logits = [](int ranks) {
    Safetensors all;
    spawn(ranks, [&](Communicator& peers) {
      Mt19937 rng(42);
      nn::ConvNet network(nn::Init{rng});
      TrainerOptions options = short_options();
      options.test_batch = 5;  // 16 images: a short last batch
      Trainer trainer(peers, network, first_digits(), options);
      trainer.step();
      const Safetensors mine = trainer.logits();
      EXPECT_EQ(mine.tensors.empty(), peers.rank() != 0);
      if (peers.rank() == 0) all = mine;
    });
    return all;
  };
  const Safetensors one = logits(1), two = logits(2);
  EXPECT_EQ(one.tensors.at("logits").shape(), (Shape{16, 10}));
  EXPECT_TRUE(same_bits(two.tensors.at("logits"), one.tensors.at("logits")));
  EXPECT_TRUE(same_bits(two.tensors.at("labels"), one.tensors.at("labels")));
  EXPECT_EQ(one.tensors.at("labels").data<int64_t>()[3], first_digits().test->label(3));
}

TEST(TrainerOptions, ImagesAreNormalizedAndChangedAsAskedFor) {
  const auto train = [](const ImageOptions& images) {
    TrainerOptions options = short_options();
    options.images = images;
    return train_on(1, options, 2);
  };
  const auto usual = usual_normalization(*first_digits().train);
  EXPECT_EQ(train({.normalize = usual}), train({}));
  EXPECT_NE(train({.normalize = {{.mean = {0.5F}, .std = {0.25F}}}}), train({}));
  EXPECT_EQ(train({.augmentation = Augmentation{}}), train({}));
  EXPECT_NE(train({.augmentation = {{.pad = 2}}}), train({}));
}

TEST(TrainerOptions, WhatIsOutOfRangeIsRefusedByName) {
  const auto refused = [](auto&& change) {
    TrainerOptions options = short_options();
    change(options);
    return error_of<UsageError>([&] {
      Digits digits;
      digits.trainer(options);
    });
  };
  EXPECT_THAT(refused([](TrainerOptions& o) { o.schedule.milestones = {3, 3}; }),
              HasSubstr("schedule.milestones is 3"));
  EXPECT_THAT(refused([](TrainerOptions& o) { o.schedule.one_cycle.div = 0; }),
              HasSubstr("schedule.one_cycle.div is 0"));
  EXPECT_THAT(refused([](TrainerOptions& o) { o.optimizer.ema = 2; }),
              HasSubstr("optimizer.ema is 2"));
}

// With what a state has: Adam's moments, a loss scale, a plateau's cuts, an average, a dealt epoch.
TEST(TrainerState, GoesOnWithTheSameBitsOnAnotherNumberOfRanks) {
  const TempDir dir;
  TrainerOptions options = short_options();
  options.epochs = 3;
  options.optimizer = {.kind = OptimizerKind::kAdam, .lr = 0.002, .ema = 0.9};
  options.schedule = {
      .kind = ScheduleKind::kPlateau, .gamma = 0.5, .plateau = {.patience = 0, .threshold = 0.5}};
  options.precision = {.level = 2};
  const auto train = [&](int ranks, int64_t until, const char* from, const char* to) {
    spawn(ranks, [&](Communicator& peers) {
      Mt19937 rng(42);
      nn::ConvNet network(nn::Init{rng});
      Trainer trainer(peers, network, first_digits(), options);
      if (from != nullptr) trainer.load_state(dir / from);
      while (trainer.steps() < until) {
        if (trainer.step().ends_epoch) trainer.evaluate();
      }
      trainer.save_state(dir / to);
    });
    return read_safetensors(dir / to);
  };
  const int64_t all = [&] {
    Digits digits;
    return digits.trainer(options).end();
  }();
  const int64_t part = 2 * all / 3 + 1;
  const Safetensors whole = train(1, all, nullptr, "whole");
  train(2, part, nullptr, "part");
  const Safetensors rest = train(4, all, "part", "rest");
  EXPECT_EQ(rest.metadata, whole.metadata);
  ASSERT_EQ(rest.tensors.size(), whole.tensors.size());
  for (const auto& [name, tensor] : whole.tensors) {
    EXPECT_TRUE(same_bits(rest.tensors.at(name), tensor)) << name;
  }
}

std::string why_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const CheckpointError& error) {
    return error.why();
  }
  return "no error";
}

TEST(TrainerState, OfAnotherTrainingIsRefused) {
  const TempDir dir;
  Digits digits;
  digits.trainer(short_options()).save_state(dir / "state");
  const auto refused = [&](auto&& change) {
    TrainerOptions options = short_options();
    change(options);
    Trainer trainer = digits.trainer(options);
    return why_of([&] { trainer.load_state(dir / "state"); });
  };
  EXPECT_THAT(refused([](TrainerOptions& o) { o.seed = 3; }), HasSubstr("seed is 3, was 42"));
  EXPECT_THAT(refused([](TrainerOptions& o) { o.optimizer.momentum = 0; }),
              HasSubstr("tensors of other names"));
  Trainer trainer = digits.trainer(short_options());
  trainer.save(dir / "weights");
  EXPECT_THAT(error_of<CheckpointError>([&] { trainer.load_state(dir / "weights"); }),
              HasSubstr("is no state of a training"));
  EXPECT_NO_THROW(trainer.load_state(dir / "state"));
  EXPECT_NO_THROW(trainer.step());
}

TEST(TrainerHooks, ARateOfTheCallersOwnIsThatOfEachStep) {
  Digits digits;
  Trainer trainer = digits.trainer(short_options(),
                                   {.rate = [](int64_t step) { return step == 2 ? 0.005 : 0.01; }});
  EXPECT_EQ(trainer.step().lr, 0.01);
  EXPECT_EQ(trainer.step().lr, 0.01);
  EXPECT_EQ(trainer.step().lr, 0.005);
}

TEST(TrainerHooks, AnOptimizerOfTheCallersOwnTakesTheSteps) {
  const auto train = [](const TrainerHooks& hooks) {
    Digits digits;
    Trainer trainer = digits.trainer(short_options(), hooks);
    for (int i = 0; i < 2; ++i) trainer.step();
    return weights_of(digits.network);
  };
  const auto make = [](float momentum) -> TrainerHooks {
    return {.make_optimizer = [=](const std::vector<nn::NamedParameter>& parameters) {
      return std::make_unique<nn::Sgd>(parameters, kernels::SgdParams{.momentum = momentum});
    }};
  };
  EXPECT_EQ(train(make(0.9F)), train({}));
  EXPECT_NE(train(make(0)), train({}));
}

TEST(TrainerHooks, AnExchangeAndAListenerSeeEachStep) {
  int buckets = 0;
  struct Counter final : TapeListener {
    void on_result(const TapeOp&, const Tensor&) override { ++results; }
    void on_gradient(const TapeOp&, size_t, Tensor&) override { ++gradients; }
    int results = 0, gradients = 0;
  } counter;
  Digits digits;
  Trainer trainer = digits.trainer(
      short_options(),
      {.exchange =
           [&](Communicator& peers, comm::Bucket& bucket) {
             ++buckets;
             return peers.start_all_reduce({.values = bucket.values, .label = bucket.label});
           },
       .listener = &counter});
  trainer.step();
  EXPECT_GT(counter.results, 0);
  EXPECT_GT(counter.gradients, 0);
  const int once = buckets;
  EXPECT_GT(once, 0);
  trainer.step();
  EXPECT_EQ(buckets, 2 * once);
  Digits plain;
  Trainer other = plain.trainer(short_options());
  for (int i = 0; i < 2; ++i) other.step();
  EXPECT_EQ(weights_of(digits.network), weights_of(plain.network));
}

TEST(TrainerHooks, AnObserverSeesStepsPhasesAndOps) {
  struct Watch final : StepObserver {
    void begin_step(int64_t step) override { last_step = step; }
    TapeListener* listener(const Shards& /*shards*/) override { return &ops; }
    void in_phase(std::string_view name, FunctionRef<void()> work) override {
      phases.emplace_back(name);
      work();
    }
    struct Ops final : TapeListener {
      void on_result(const TapeOp& /*op*/, const Tensor& /*result*/) override { ++results; }
      void on_gradient(const TapeOp& /*op*/, size_t /*i*/, Tensor& /*gradient*/) override {}
      int results = 0;
    } ops;
    int64_t last_step = 0;
    std::vector<std::string> phases;
  } watch;
  Digits digits;
  Trainer trainer = digits.trainer(short_options(), {.observer = &watch});
  for (int i = 0; i < 2; ++i) trainer.step();
  EXPECT_EQ(watch.last_step, 2);
  EXPECT_GT(watch.ops.results, 0);
  EXPECT_THAT(watch.phases,
              ::testing::ElementsAre(kForwardSpan,
                                     kBackwardSpan,
                                     kSumsSpan,
                                     kUpdateSpan,
                                     kForwardSpan,
                                     kBackwardSpan,
                                     kSumsSpan,
                                     kUpdateSpan));
}

}  // namespace
}  // namespace lockstep::testing::trainer_options_test
