// What a Trainer takes: data sets and networks of the user's own.
#include <cstdlib>
#include <new>

#include <gmock/gmock.h>

#include "comm/single.h"
#include "engine/trainer.h"
#include "nn/layers.h"
#include "tests/engine/trainings.h"

namespace lockstep::testing::trainer_inputs_test {
namespace {

using ::testing::HasSubstr;

// The first of the digits, under another name than the library's.
class OwnDigits : public data::Digits {
 public:
  OwnDigits(Split split, int64_t size) : Digits(split), size_(size) {}
  std::string name() const override { return "own"; }
  int64_t size() const override { return size_; }

 private:
  const int64_t size_;
};

std::shared_ptr<const data::Dataset> own(int64_t size,
                                         data::Digits::Split split = data::Digits::Split::kTrain) {
  return std::make_shared<OwnDigits>(split, size);
}

class TrainerInputs : public ::testing::Test {
 protected:
  std::string refused(const data::DatasetPair& images) {
    return error_of<UsageError>([&] { Trainer(alone_, network_, images, short_options()); });
  }

  comm::SingleCommunicator alone_;
  Mt19937 rng_{1};
  nn::ConvNet network_{nn::Init{rng_}};
};

TEST_F(TrainerInputs, BothDataSetsHaveImages) {
  EXPECT_THAT(refused({own(0), own(32)}), HasSubstr("a data set has no images"));
  EXPECT_THAT(refused({own(32), own(0)}), HasSubstr("a data set has no images"));
}

// Images of one's own are not normalized. The library's are, but not where a network was trained on
// others.
TEST_F(TrainerInputs, TestImagesAreNormalizedAsTrainingImages) {
  const auto loss = [&](std::shared_ptr<const data::Dataset> test) {
    Trainer trainer(alone_, network_, {own(32), std::move(test)}, short_options());
    return trainer.evaluate().loss;
  };
  const std::shared_ptr<const data::Dataset> test = data::open_digits().test;
  EXPECT_EQ(loss(test), loss(own(test->size(), data::Digits::Split::kTest)));
}

TEST_F(TrainerInputs, ANetworkHasOneTrainerAtATime) {
  {
    Trainer first(alone_, network_, data::open_digits(), short_options());
    EXPECT_THAT(refused(data::open_digits()), HasSubstr("another reducer or trainer"));
    EXPECT_NO_THROW(first.step());
  }
  Trainer second(alone_, network_, data::open_digits(), short_options());
  EXPECT_NO_THROW(second.step());
}

TEST_F(TrainerInputs, AParameterCanBeTrained) {
  for (Var parameter : network_.parameters()) parameter.set_requires_grad(false);
  EXPECT_THAT(refused(data::open_digits()), HasSubstr("no parameter of the network"));
}

// The hints are for a Trainer's users, who have no reducer.
TEST_F(TrainerInputs, AParameterThatIsFrozenLaterIsNamed) {
  Trainer trainer(alone_, network_, data::open_digits(), short_options());
  trainer.step();
  network_.parameters().front().set_requires_grad(false);
  EXPECT_THAT(error_of<UsageError>([&] { trainer.step(); }),
              HasSubstr("was frozen after its GradientReducer or Trainer was made"));
}

class UnusedLayer : public nn::ConvNet {
 public:
  explicit UnusedLayer(const nn::Init& init) : ConvNet(init), layer_(init, 4, 2) {
    register_module("unused", layer_);
  }

 private:
  nn::Linear layer_;
};

TEST_F(TrainerInputs, ALayerThatIsNotUsedIsNamed) {
  UnusedLayer network(nn::Init{rng_});
  {
    Trainer trainer(alone_, network, data::open_digits(), short_options());
    try {
      trainer.step();
      FAIL() << "no error";
    } catch (const UsageError& error) {
      EXPECT_THAT(error.why(), HasSubstr("unused.weight"));
      EXPECT_THAT(error.hint(), HasSubstr("before the Trainer is made"));
    }
  }
  for (const nn::NamedParameter& parameter : network.named_parameters()) {
    Var var = parameter.var;
    if (parameter.name.starts_with("unused")) var.set_requires_grad(false);
  }
  Trainer trainer(alone_, network, data::open_digits(), short_options());
  EXPECT_NO_THROW(trainer.step());
}

TEST_F(TrainerInputs, ADataSetHasALimit) {
  EXPECT_THAT(error_of<DataError>([&] {
                Trainer trainer(
                    alone_, network_, {own(int64_t{1} << 60), own(32)}, short_options());
                trainer.step();
              }),
              HasSubstr("images is too large"));
}

class NoMemory : public OwnDigits {
 public:
  NoMemory() : OwnDigits(Split::kTrain, 64) {}
  void read(int64_t, std::span<uint8_t>) const override { throw std::bad_alloc(); }
};

TEST_F(TrainerInputs, MemoryThatRunsOutInReadIsAnEnvironmentError) {
  const auto data = std::make_shared<NoMemory>();
  for (const int workers : {0, 1}) {
    TrainerOptions options = short_options();
    options.rank.workers = workers;
    Trainer trainer(alone_, network_, {data, data}, options);
    EXPECT_THAT(error_of<EnvironmentError>([&] { trainer.step(); }), HasSubstr("out of memory"));
    EXPECT_THAT(error_of<EnvironmentError>([&] { trainer.evaluate(); }),
                HasSubstr("out of memory"));
  }
  EXPECT_THROW(spawn(1, [](Communicator&) { throw std::bad_alloc(); }), RankError);
}

TEST_F(TrainerInputs, AForkedChildIsRefused) {
  TrainerOptions options = short_options();
  options.rank = {.threads = 2, .workers = 2};
  auto trainer = std::make_unique<Trainer>(alone_, network_, data::open_digits(), options);
  trainer->step();
  EXPECT_EXIT(
      {
        error_of<UsageError>([&] { trainer->step(); });
        error_of<UsageError>([&] { trainer->evaluate(); });
        trainer.reset();
        std::_Exit(HasFailure() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0),
      "");
  EXPECT_NO_THROW(trainer->step());
}

class Part : public nn::Module {
 public:
  explicit Part(const nn::Init& init) : layer_(init, 4, 2) { register_module("b", layer_); }
  Var forward(const Var& x) override { return layer_.forward(x); }

 private:
  nn::Linear layer_;
};

// "b" of "a", and "a.b", have the same name in a file.
class TwoPaths : public nn::Module {
 public:
  explicit TwoPaths(const nn::Init& init) : part_(init), layer_(init, 4, 2) {
    register_module("a", part_);
    register_module("a.b", layer_);
  }
  Var forward(const Var& x) override { return layer_.forward(part_.forward(x)); }

 private:
  Part part_;
  nn::Linear layer_;
};

TEST_F(TrainerInputs, AFullNameIsOfOneTensor) {
  const TwoPaths network(nn::Init{rng_});
  EXPECT_THAT(error_of<UsageError>([&] { (void)network.state(); }),
              HasSubstr("two tensors of a network are called 'a.b.weight'"));
}

}  // namespace
}  // namespace lockstep::testing::trainer_inputs_test
