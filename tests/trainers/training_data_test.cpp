#include "trainers/loop/training_data.h"

#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "data/synthetic.h"
#include "tests/trainers/options_of.h"
#include "trainers/config/augmentation_config.h"
#include "trainers/config/config_from_flags.h"

namespace lockstep::trainers::training_data_test {
namespace {

using data::ImageShape;
using testing::options_of;

RunRequest resnet(const std::string& line) {
  return make_run_request(options_of(line, {}, Program::kTrainResnet));
}

TEST(TrainingData, SyntheticImagesFitTheNetwork) {
  const data::DatasetPair gray = open_training_data(make_run_request(options_of("--dummy")));
  EXPECT_EQ(gray.train->image_shape(), (ImageShape{1, 28, 28}));
  EXPECT_EQ(gray.train->size(), 60000);

  const data::DatasetPair large = open_training_data(resnet("--dummy -a resnet50"));
  EXPECT_EQ(large.train->image_shape(), (ImageShape{3, 224, 224}));
  EXPECT_EQ(large.train->size(), 1281167);
  EXPECT_EQ(large.test->size(), 50000);
  EXPECT_EQ(large.train->classes(), 1000);
  EXPECT_NE(large.train->digest(), large.test->digest());

  for (const char* line :
       {"--dummy -a resnet20", "--dummy -a resnet18 --cifar-stem", "--dummy -a airbench94"}) {
    const data::DatasetPair small = open_training_data(resnet(line));
    EXPECT_EQ(small.train->image_shape(), (ImageShape{3, 32, 32})) << line;
    EXPECT_EQ(small.train->size(), 50000);
    EXPECT_EQ(small.test->size(), 10000);
    EXPECT_EQ(small.train->classes(), 10);
  }
  const RunRequest seven = resnet("--dummy -a resnet18 --num-classes 7");
  EXPECT_EQ(open_training_data(seven).train->classes(), 7);
}

// Stands in for CIFAR-10's files.
class Cifar10Like : public data::Synthetic {
 public:
  Cifar10Like() : Synthetic({.images = 1, .shape = {3, 32, 32}}) {}
  std::string name() const override { return "cifar10/train"; }
};

TEST(TrainingData, Cifar10IsNormalizedLikeImageNet) {
  const RunRequest request = resnet("--dummy -a resnet20");
  const Cifar10Like cifar10;
  const data::DatasetPair synthetic = open_training_data(request);
  for (const data::Dataset* set :
       {static_cast<const data::Dataset*>(&cifar10), synthetic.train.get()}) {
    const kernels::NormalizeImageParams params = normalization(request.normalize, *set);
    EXPECT_EQ(params.mean, (std::vector{0.485F, 0.456F, 0.406F}));
    EXPECT_EQ(params.std, (std::vector{0.229F, 0.224F, 0.225F}));
  }
}

TEST(TrainingData, GivenConstantsAreForEveryChannel) {
  const Cifar10Like color;
  const kernels::NormalizeImageParams params =
      normalization(resnet("--normalize 0.25,0.5").normalize, color);
  EXPECT_EQ(params.mean, std::vector(3, 0.25F));
  EXPECT_EQ(params.std, std::vector(3, 0.5F));
  const RunRequest three = resnet("--normalize 0.1,0.2,0.3,1,2,3");
  EXPECT_EQ(normalization(three.normalize, color).std, (std::vector{1.0F, 2.0F, 3.0F}));
  const data::Synthetic gray({.images = 1, .shape = {1, 28, 28}});
  EXPECT_THROW(normalization(three.normalize, gray), UsageError);
}

// Checks that the normalization constants are those of the images.
TEST(TrainingData, NormalizedShapesHaveMean0AndDeviation1) {
  const RunRequest request = resnet("");
  const data::DatasetPair pair = open_training_data(request);
  const kernels::NormalizeImageParams params = normalization(request.normalize, *pair.train);
  ASSERT_EQ(params.mean.size(), 3U);
  std::array<double, 3> sum{};
  std::array<double, 3> squares{};
  std::vector<uint8_t> pixels(3072);
  constexpr int64_t kImages = 2000;
  for (int64_t i = 0; i < kImages; ++i) {
    pair.train->read(i, pixels);
    for (size_t k = 0; k < pixels.size(); ++k) {
      const double x = (pixels[k] / 255.0 - params.mean[k % 3]) / params.std[k % 3];
      sum.at(k % 3) += x;
      squares.at(k % 3) += x * x;
    }
  }
  for (size_t c = 0; c < 3; ++c) {
    const double mean = sum.at(c) / (kImages * 1024);
    EXPECT_NEAR(mean, 0, 0.05);
    EXPECT_NEAR(std::sqrt(squares.at(c) / (kImages * 1024) - mean * mean), 1, 0.02);
  }
}

}  // namespace
}  // namespace lockstep::trainers::training_data_test
