// Tests --arch and the options that belong to it.
#include "trainers/model/models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainers/options_of.h"

namespace lockstep::trainers::models_test {
namespace {

using ::testing::HasSubstr;
using testing::usage_error;

constexpr data::ImageShape kGray{1, 28, 28};
constexpr data::ImageShape kColor{3, 32, 32};
constexpr data::ImageShape kPhoto{3, 224, 224};

std::unique_ptr<nn::Module> make(const ModelOptions& options) {
  Mt19937 rng(1);
  return make_model(options, nn::Init{rng, Device::kDry});
}

int64_t parameters_of(const ModelOptions& options) {
  return make(options)->parameter_count();
}

TEST(Models, AllNetworks) {
  EXPECT_EQ(parameters_of({.arch = "convnet", .image = kGray}), 29034);
  EXPECT_EQ(parameters_of({.arch = "toy_net", .image = kGray}), 5752714);
  EXPECT_EQ(parameters_of({.arch = "resnet18", .classes = 1000, .image = kColor}), 11689512);
  EXPECT_EQ(parameters_of({.arch = "resnet34", .classes = 1000, .image = kColor}), 21797672);
  EXPECT_EQ(parameters_of({.arch = "resnet50", .classes = 1000, .image = kColor}), 25557032);
  EXPECT_EQ(parameters_of({.arch = "resnet101", .classes = 1000, .image = kColor}), 44549160);
  EXPECT_EQ(parameters_of({.arch = "resnet152", .classes = 1000, .image = kColor}), 60192808);
  EXPECT_EQ(parameters_of({.arch = "resnext50_32x4d", .classes = 1000, .image = kPhoto}), 25028904);
  EXPECT_EQ(parameters_of({.arch = "seresnet50", .classes = 1000, .image = kPhoto}), 28088024);
  EXPECT_EQ(parameters_of({.arch = "resnet20", .image = kColor}), 269722);
  EXPECT_EQ(parameters_of({.arch = "resnet32", .image = kColor}), 464154);
  EXPECT_EQ(parameters_of({.arch = "resnet44", .image = kColor}), 658586);
  EXPECT_EQ(parameters_of({.arch = "resnet56", .classes = 100, .image = kColor}), 853018 + 90 * 65);
  EXPECT_EQ(parameters_of({.arch = "alexnet", .classes = 1000, .image = kPhoto}), 61100840);
  EXPECT_EQ(parameters_of({.arch = "vgg16", .classes = 1000, .image = kPhoto}), 138357544);
  EXPECT_EQ(parameters_of({.arch = "vgg16_bn", .classes = 1000, .image = kPhoto}), 138365992);
  EXPECT_EQ(parameters_of({.arch = "ghostnet_100", .classes = 1000, .image = kPhoto}), 5182508);
  EXPECT_EQ(parameters_of({.arch = "airbench94", .image = kColor}), 1971352);
  EXPECT_EQ(parameters_of({.arch = "airbench95", .image = kColor}), 4604440);
  EXPECT_EQ(parameters_of({.arch = "airbench96", .classes = 100, .image = kColor}),
            9915416 + 90 * 512);
}

TEST(Models, CifarStemIsSmaller) {
  const int64_t plain = parameters_of({.arch = "resnet34", .image = kColor});
  EXPECT_EQ(parameters_of({.arch = "resnet34", .image = kColor, .cifar_stem = true}),
            plain - int64_t{64} * 3 * (49 - 9));
}

struct Refused {
  const char* name;
  ModelOptions options;
  const char* what;
  const char* why;
};

class ModelsRefused : public ::testing::TestWithParam<Refused> {};

TEST_P(ModelsRefused, SayWhy) {
  const auto error = usage_error([] { make(GetParam().options); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), HasSubstr(GetParam().what));
  EXPECT_THAT(error->why(), HasSubstr(GetParam().why));
  EXPECT_FALSE(error->hint().empty());
}

INSTANTIATE_TEST_SUITE_P(
    Options,
    ModelsRefused,
    ::testing::Values(
        Refused{"Unknown", {.arch = "resnet19", .image = kColor}, "no network 'resnet19'", ""},
        Refused{"GrayImages",
                {.arch = "resnet20", .image = kGray},
                "resnet20 is for images of 3 channels",
                "have 1 channel of 28x28 pixels"},
        Refused{"ColorImages",
                {.arch = "convnet", .image = kColor},
                "convnet is for gray images of 28x28 pixels",
                "have 3 channels of 32x32 pixels"},
        Refused{"OtherSize",
                {.arch = "toy_net", .image = {1, 32, 28}},
                "toy_net is for gray images",
                "have 1 channel of 32x28 pixels"},
        Refused{"TooSmallForAlexNet",
                {.arch = "alexnet", .image = {3, 64, 62}},
                "alexnet is for images of 63x63 pixels or more",
                "have 64x62 pixels"},
        Refused{"TooSmallForVgg",
                {.arch = "vgg16_bn", .image = {3, 28, 28}},
                "vgg16_bn is for images of 32x32 pixels or more",
                "have 28x28 pixels"},
        Refused{"TooSmallForAirbench",
                {.arch = "airbench94", .image = {3, 24, 32}},
                "airbench94 is for images of 25x25 pixels or more",
                "have 24x32 pixels"},
        Refused{"TooLargeForAirbench",
                {.arch = "airbench96", .image = {3, 32, 49}},
                "airbench96 is for images of 48x48 pixels or less",
                "have 32x49 pixels"},
        Refused{"Classes",
                {.arch = "toy_net", .classes = 100, .image = kGray},
                "toy_net has 10 outputs",
                "100 classes"},
        Refused{"StemOfResNet50",
                {.arch = "resnet50", .image = kColor, .cifar_stem = true},
                "--cifar-stem: resnet50",
                "resnet18 and resnet34"},
        Refused{"StemOfResNet20",
                {.arch = "resnet20", .image = kColor, .cifar_stem = true},
                "--cifar-stem: resnet20",
                "resnet18 and resnet34"},
        Refused{"ZeroInit",
                {.arch = "resnet56", .image = kColor, .zero_init_residual = true},
                "--zero-init-residual: resnet56",
                "resnet18 to resnet152"},
        Refused{"BlurPool",
                {.arch = "vgg16", .image = kPhoto, .blur_pool = true},
                "--blur-pool: vgg16",
                "resnet18 to resnet152"},
        Refused{"DropPath",
                {.arch = "vgg16", .image = kColor, .drop_path = 0.1},
                "--drop-path: vgg16 has no residual blocks",
                "branches of such blocks"}),
    [](const auto& run) { return run.param.name; });

TEST(Models, AnUnknownNetworkListsThoseThatThereAre) {
  const auto error = usage_error([] { make({.arch = "vgg19", .image = kColor}); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->hint(), HasSubstr("convnet toy_net resnet18"));
  EXPECT_THAT(error->hint(), HasSubstr("resnet56"));
}

}  // namespace
}  // namespace lockstep::trainers::models_test
