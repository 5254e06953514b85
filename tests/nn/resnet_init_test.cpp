// Residual networks against PyTorch: names, shapes, initial weights of the same seed.
#include <gtest/gtest.h>

#include "nn/init.h"
#include "tests/support/close.h"
#include "tests/support/fingerprint.h"
#include "tests/support/golden.h"
#include "tests/support/resnets.h"
#include "tests/support/sha256.h"
#include "tests/support/state_lines.h"

namespace lockstep::nn::resnet_init_test {
namespace {

using testing::close;
using testing::Fingerprint;
using testing::GoldenCase;

// PyTorch's logarithm and cosine are approximate, by this part of a standard deviation.
constexpr double kNormalError = 1.8e-6;

std::unique_ptr<Module> make(const GoldenCase& golden, const Init& init) {
  return testing::make_resnet(golden.text("network"),
                              init,
                              {.classes = static_cast<int64_t>(golden.number("classes")),
                               .zero_init_residual = golden.number("zero_init_residual") != 0});
}

class ResNetInit : public ::testing::TestWithParam<std::string> {
 protected:
  const GoldenCase golden_ = testing::golden_case("resnet_init", GetParam());
};

TEST_P(ResNetInit, NamesAndShapesArePyTorchs) {
  Mt19937 rng(42);
  const std::unique_ptr<Module> model = make(golden_, Init{rng, Device::kDry});
  EXPECT_EQ(testing::sha256(testing::state_lines(*model)), golden_.text("shape_sha256"));
  EXPECT_EQ(static_cast<double>(model->state().size()), golden_.number("entries"));
  EXPECT_EQ(static_cast<double>(model->parameter_count()), golden_.number("parameters"));
}

// Whatever is not drawn from a normal distribution is PyTorch's bit for bit.
TEST_P(ResNetInit, InitialWeightsArePyTorchs) {
  Mt19937 rng(42);
  const std::unique_ptr<Module> model = make(golden_, Init{rng});
  const std::vector<NamedParameter> parameters = model->named_parameters();
  const Tensor projections = golden_.tensor("projections");
  const Tensor first = golden_.tensor("first");
  ASSERT_EQ(projections.shape()[0], static_cast<int64_t>(parameters.size()));
  double sum = 0;

  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string& name = parameters[i].name;
    const bool is_normal = parameters[i].file_shape.rank() == 4 || name == "linear.weight";
    const double error = is_normal ? kNormalError : 0;
    const Tensor value = to_row_major(parameters[i].var.value());
    for (const float element : value.span<float>()) sum += static_cast<double>(element);
    const Fingerprint got = testing::fingerprint(value.span<float>());
    const double std = got.norm / std::sqrt(static_cast<double>(value.numel()));

    const auto row = static_cast<int64_t>(i);
    const double rounding = 1e-7 * got.norm;  // of the golden projections
    EXPECT_LE(got.distance(projections.slice(row, 1).span<float>()), error * got.norm + rounding)
        << name;
    const auto elements = std::min<size_t>(4, static_cast<size_t>(value.numel()));
    EXPECT_TRUE(close(value.span<float>().first(elements),
                      first.slice(row, 1).span<float>().first(elements),
                      {.abs = error * std}))
        << name;
  }
  EXPECT_NEAR(sum, golden_.number("sum"), 1e-2);
}

INSTANTIATE_TEST_SUITE_P(PyTorch,
                         ResNetInit,
                         ::testing::Values("resnet18",
                                           "resnet34",
                                           "resnet50",
                                           "resnet101",
                                           "resnet152",
                                           "resnext50_32x4d",
                                           "seresnet50",
                                           "resnet18_blur",
                                           "resnet50_blur",
                                           "resnet18_zero_init",
                                           "resnet50_zero_init",
                                           "resnet20",
                                           "resnet32",
                                           "resnet44",
                                           "resnet56"),
                         [](const auto& run) { return run.param; });

TEST(ResNetInitErrors, DepthsThatDoNotExist) {
  Mt19937 rng(42);
  const Init dry{rng, Device::kDry};
  EXPECT_THROW(ResNet(dry, 20, {}), InternalError);
  EXPECT_THROW(CifarResNet(dry, 18), InternalError);
  EXPECT_THROW(CifarResNet(dry, 2), InternalError);
}

}  // namespace
}  // namespace lockstep::nn::resnet_init_test
