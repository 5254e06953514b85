// What a Trainer takes: data sets and networks of the user's own.
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
