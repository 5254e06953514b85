// AlexNet, VGG and GhostNet against torchvision and timm: names, shapes, initial weights of the
// same seed, logits and gradients; and where they drop.
#include "tests/support/photo_networks.h"

#include <gtest/gtest.h>

#include "nn/functional.h"
#include "tests/support/close.h"
#include "tests/support/fingerprint.h"
#include "tests/support/golden.h"
#include "tests/support/network_gradients.h"
#include "tests/support/random_tensor.h"
#include "tests/support/sha256.h"
#include "tests/support/state_lines.h"

namespace lockstep::nn::photo_networks_test {
namespace {

using testing::GoldenCase;
using testing::make_photo_network;
using testing::same_bits;

std::unique_ptr<Module> make_narrow(const GoldenCase& golden, const Init& init) {
  return make_photo_network(golden.name(),
                            init,
                            {.classes = static_cast<int64_t>(golden.number("classes")),
                             .hidden = static_cast<int64_t>(golden.number("hidden"))});
}

class PhotoNetworks : public ::testing::TestWithParam<std::string> {};

TEST_P(PhotoNetworks, NamesAndShapesAreTheirs) {
  const GoldenCase golden = testing::golden_case("photo_network_init", GetParam());
  Mt19937 rng(42);
  const auto model = make_photo_network(GetParam(), Init{rng, Device::kDry}, {});
  EXPECT_EQ(testing::sha256(testing::state_lines(*model)), golden.text("shape_sha256"));
  EXPECT_EQ(static_cast<double>(model->state().size()), golden.number("entries"));
  EXPECT_EQ(static_cast<double>(model->parameter_count()), golden.number("parameters"));
}

// Bit for bit but for VGG's normal draws, which are approximate in PyTorch.
TEST_P(PhotoNetworks, InitialWeightsAreTheirs) {
  constexpr double kNormalError = 1.8e-6;  // of a standard deviation
  const GoldenCase golden = testing::golden_case("photo_network_init", GetParam());
  Mt19937 rng(42);
  const auto model = make_narrow(golden, Init{rng});
  const std::vector<NamedParameter> parameters = model->named_parameters();
  const Tensor projections = golden.tensor("projections");
  ASSERT_EQ(projections.shape()[0], std::ssize(parameters));
  const bool is_vgg = GetParam().starts_with("vgg");
  double sum = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor value = to_row_major(parameters[i].var.value());
    for (const float element : value.span<float>()) sum += static_cast<double>(element);
    const testing::Fingerprint got = testing::fingerprint(value.span<float>());
    const double error = is_vgg ? kNormalError : 0;
    const double rounding = 1e-7 * got.norm;  // of the golden projections
    EXPECT_LE(got.distance(projections.slice(static_cast<int64_t>(i), 1).span<float>()),
              error * got.norm + rounding)
        << parameters[i].name;
  }
  EXPECT_NEAR(sum, golden.number("sum"), 1e-2);
}

TEST_P(PhotoNetworks, LogitsAndGradientsAreTheirs) {
  const std::string file = "photo_network_gradients";
  const bool open_gates = testing::golden_case(file, GetParam()).number("open_gates") != 0;
  testing::NetworkGradients network(file, GetParam(), make_narrow, open_gates);
  network.expect_pytorchs();
}

INSTANTIATE_TEST_SUITE_P(PyTorch,
                         PhotoNetworks,
                         ::testing::Values("alexnet", "vgg16", "vgg16_bn", "ghostnet_100"),
                         [](const auto& run) { return run.param; });

constexpr int64_t kImages = 2;

// A network with narrow layers on small images.
class Dropping {
 public:
  Dropping(const std::string& name, double dropout)
      : model_(make_photo_network(
            name, Init{rng_}, {.classes = 5, .hidden = 16, .dropout = dropout})) {
    const int64_t pixels = name == "alexnet" ? AlexNet::kSmallestImage : Vgg16::kSmallestImage;
    images_ = testing::random_tensor({kImages, 3, pixels, pixels}, 7, -1, 1);
  }

  // Images are numbered from `first`.
  Tensor logits(int64_t first, uint64_t seed = 1) {
    Draws draws{.seed = seed, .images = Tensor::empty({kImages}, Dtype::kI64)};
    for (int64_t n = 0; n < kImages; ++n) draws.images.data<int64_t>()[n] = first + n;
    return model_
        ->forward(
            Var(images_, make_batch(stream_, Shards::single(kImages), true, {}, nullptr, draws)))
        .value();
  }
  Module& model() { return *model_; }
  Tensor parameter(const std::string& name) const {
    for (const NamedParameter& parameter : model_->named_parameters()) {
      if (parameter.name == name) return parameter.var.value();
    }
    ADD_FAILURE() << name;
    return {};
  }

 private:
  Mt19937 rng_{42};
  Stream stream_;
  std::unique_ptr<Module> model_;
  Tensor images_;
};

class PhotoNetworksDropping : public ::testing::TestWithParam<std::string> {};

TEST_P(PhotoNetworksDropping, FollowsSeedAndNumbersAndIsOffInEvaluation) {
  Dropping network(GetParam(), 0.5);
  const Tensor first = network.logits(0);
  EXPECT_TRUE(same_bits(network.logits(0), first));
  EXPECT_FALSE(same_bits(network.logits(kImages), first)) << "another epoch";
  EXPECT_FALSE(same_bits(network.logits(0, 2), first)) << "another seed";
  network.model().train(false);
  const Tensor whole = network.logits(0);
  EXPECT_TRUE(same_bits(network.logits(kImages), whole));
}

// All is dropped, so what comes out tells where: biases, which are not zero by default.
TEST_P(PhotoNetworksDropping, IsWhereTheyHaveIt) {
  Dropping network(GetParam(), 1);
  const bool is_alexnet = GetParam() == "alexnet";
  const std::string last = GetParam() == "ghostnet_100" ? "classifier" : "classifier.6";
  const Tensor weight = network.parameter(last + ".weight");
  Tensor bias = network.parameter(last + ".bias");
  for (int64_t k = 0; k < bias.numel(); ++k) bias.data<float>()[k] = static_cast<float>(k + 1);
  const Tensor got = network.logits(0);
  for (int64_t i = 0; i < got.numel(); ++i) {
    const int64_t k = i % bias.numel();
    double want = static_cast<double>(bias.data<float>()[k]);
    if (is_alexnet) {  // nothing is dropped after its second layer
      const Tensor before = network.parameter("classifier.4.bias");
      for (int64_t j = 0; j < before.numel(); ++j) {
        want += std::max(0.0, static_cast<double>(before.data<float>()[j])) *
                static_cast<double>(weight.data<float>()[k * before.numel() + j]);
      }
    }
    EXPECT_NEAR(got.data<float>()[i], want, 1e-5) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Networks,
                         PhotoNetworksDropping,
                         ::testing::Values("alexnet", "vgg16", "ghostnet_100"),
                         [](const auto& run) { return run.param; });

TEST(Dropout, NeedsNumberedImages) {
  Stream stream;
  Dropout layer(0.5, 0);
  const Tensor images = testing::random_tensor({2, 3}, 1);
  const Var x(images, make_batch(stream, Shards::single(2)));
  EXPECT_THROW((void)layer.forward(x), InternalError);
  layer.train(false);
  EXPECT_TRUE(layer.forward(x).same_as(x));
}

}  // namespace
}  // namespace lockstep::nn::photo_networks_test
