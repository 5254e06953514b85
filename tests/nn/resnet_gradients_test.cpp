// Residual networks against PyTorch in double: logits and every gradient with the same weights.
#include "tests/support/network_gradients.h"
#include "tests/support/resnets.h"

namespace lockstep::nn::resnet_gradients_test {
namespace {

class ResNetGradients : public ::testing::TestWithParam<std::string> {};

TEST_P(ResNetGradients, LogitsAndGradientsArePyTorchs) {
  testing::NetworkGradients network(
      "resnet_gradients", GetParam(), [](const testing::GoldenCase& golden, const Init& init) {
        const auto classes = static_cast<int64_t>(golden.number("classes"));
        return testing::make_resnet(golden.name(), init, {.classes = classes});
      });
  network.expect_pytorchs();
}

INSTANTIATE_TEST_SUITE_P(PyTorch,
                         ResNetGradients,
                         ::testing::Values("resnet20",
                                           "resnet32",
                                           "resnet44",
                                           "resnet56",
                                           "resnet18_cifar",
                                           "resnet18",
                                           "resnet34",
                                           "resnet50",
                                           "resnet101",
                                           "resnet152",
                                           "resnext50_32x4d",
                                           "seresnet50",
                                           "resnet18_blur",
                                           "resnet50_blur"),
                         [](const auto& run) { return run.param; });

}  // namespace
}  // namespace lockstep::nn::resnet_gradients_test
