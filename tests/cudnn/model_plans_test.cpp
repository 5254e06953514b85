// Real cuDNN makes a plan for every convolution of the networks, for a card that is not here.
// tests/long/cudnn_plans.sh does all networks and cards.
#include <gmock/gmock.h>

#include "core/cuda/library.h"
#include "inspect/plan/convolution_plans.h"
#include "inspect/plan/gpu_card.h"
#include "kernels/conv/conv2d_cudnn.h"
#include "kernels/conv/cudnn_plan.h"

namespace lockstep::trainers::model_plans_test {
namespace {

struct Case {
  const char* arch;
  int64_t images;
  size_t distinct;  // convolutions and gradients, counted from the architecture
};

class ModelPlans : public ::testing::TestWithParam<Case> {};

TEST_P(ModelPlans, EveryConvolutionHasOneOnH200) {
  const std::string h200 = find_gpu("h200").cudnn_properties;
  for (const Dtype dtype : {Dtype::kF32, Dtype::kF16, Dtype::kBF16}) {
    const PrecisionConfig precision = dtype == Dtype::kF32
                                          ? PrecisionConfig{}
                                          : PrecisionConfig{.level = OptLevel::kO2, .dtype = dtype};
    const DryStep step = run_dry_step(usual_network(GetParam().arch), GetParam().images, precision);
    std::vector<PlannedConvolution> calls = convolutions_of(step);
    EXPECT_EQ(calls.size(), GetParam().distinct);
    choose_engines(h200, calls);  // throws where there is a hole
    for (const PlannedConvolution& call : calls) {
      EXPECT_TRUE(call.choice.starts_with("engine ")) << call.problem.text() << call.choice;
      EXPECT_EQ(call.problem.dtype, dtype);
    }
  }
}

// resnet18: 11 shapes (stem, 4 of stride 1, 3 of stride 2, 3 shortcuts). resnet50: 23.
// resnext50_32x4d: 24, since its first shortcut is like no other.
// seresnet50: those of resnet50, without those on one pixel. ghostnet_100: 28, without its
// depthwise ones and those on one pixel. airbench94: 5, and the
// frozen one, which has no gradient. The stem's images want no gradient, and bias makes no other
// call of a gradient.
INSTANTIATE_TEST_SUITE_P(Networks,
                         ModelPlans,
                         ::testing::Values(Case{"convnet", 100, 2 * 3 - 1},
                                           Case{"toy_net", 100, 4 * 3 - 1},
                                           Case{"resnet18", 256, 11 * 3 - 1},
                                           Case{"resnet50", 256, 23 * 3 - 1},
                                           Case{"resnext50_32x4d", 256, 24 * 3 - 1},
                                           Case{"seresnet50", 256, 23 * 3 - 1},
                                           Case{"alexnet", 256, 5 * 3 - 1},
                                           Case{"ghostnet_100", 256, 28 * 3 - 1},
                                           Case{"airbench94", 1024, 5 * 3 + 1}),
                         [](const auto& test) { return std::string(test.param.arch); });

TEST(Plans, SameProblemSameChoice) {
  using namespace kernels;
  const cudnn::Target target = cudnn::Target::described_by(find_gpu("a100").cudnn_properties);
  const ConvolutionProblem problem{.pass = ConvolutionPass::kBackwardWeight,
                                   .dtype = Dtype::kF16,
                                   .in = {64, 64, 56, 56},
                                   .weight = {64, 64, 3, 3},
                                   .params = {1, 1, 1, 1}};
  const auto first = cudnn::make_plan(target, problem, cudnn::kMaxWorkspace);
  const auto second = cudnn::make_plan(target, problem, cudnn::kMaxWorkspace);
  EXPECT_EQ(first->choice(), second->choice());
}

// In f16, all but the stem, which has three channels.
TEST(Plans, ResNet50HasFusedForms) {
  using namespace kernels;
  const PrecisionConfig precision{.level = OptLevel::kO2, .dtype = Dtype::kF16};
  const auto calls = convolutions_of(run_dry_step(usual_network("resnet50"), 32, precision));
  for (const char* gpu : {"a100", "h200"}) {
    const cudnn::Target target = cudnn::Target::described_by(find_gpu(gpu).cudnn_properties);
    int sums = 0, norms = 0, gradients = 0;
    for (const PlannedConvolution& call : calls) {
      for (const ConvolutionProblem& form : fused_forms(call.problem)) {
        if (cudnn::find_plan(target, form, cudnn::kMaxWorkspace) == nullptr) continue;
        ++(!form.norms_in ? sums : form.gives_sums ? norms : gradients);
      }
    }
    EXPECT_EQ(sums, 22) << gpu;
    EXPECT_EQ(norms, 22) << gpu;
    EXPECT_EQ(gradients, 22) << gpu;
  }
}

// cuDNN's own first choices are TF32 for the one and sums in f16 for the other.
TEST(Plans, SumInF32WhatIsThere) {
  using namespace kernels;
  const ConvolutionProblem stem{
      .in = {256, 4, 224, 224}, .weight = {64, 4, 7, 7}, .params = {2, 2, 3, 3}};
  for (const char* gpu : {"a100", "h200", "b200"}) {
    const cudnn::Target target = cudnn::Target::described_by(find_gpu(gpu).cudnn_properties);
    for (const Dtype dtype : {Dtype::kF32, Dtype::kF16}) {
      ConvolutionProblem problem = stem;
      problem.dtype = dtype;
      const auto plan = cudnn::make_plan(target, problem, cudnn::kMaxWorkspace);
      // Tensor cores read f32 as TF32.
      const auto note =
          dtype == Dtype::kF32 ? CUDNN_NUMERICAL_NOTE_FFT : CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
      EXPECT_THAT(plan->notes(),
                  ::testing::Each(::testing::AnyOf(note,
                                                   CUDNN_NUMERICAL_NOTE_FFT,
                                                   CUDNN_NUMERICAL_NOTE_WINOGRAD,
                                                   CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP)))
          << gpu << ' ' << lockstep::name_of(dtype);
    }
  }
}

TEST(Plans, StayWithinTheWorkspace) {
  using namespace kernels;
  const cudnn::Target target = cudnn::Target::described_by(find_gpu("h200").cudnn_properties);
  const ConvolutionProblem stem{.dtype = Dtype::kF16,
                                .in = {256, 3, 224, 224},
                                .weight = {64, 3, 7, 7},
                                .params = {2, 2, 3, 3}};
  EXPECT_EQ(cudnn::make_plan(target, stem.padded(), cudnn::kMaxWorkspace)->workspace_bytes(), 0U);
  constexpr size_t kSmall = size_t{16} << 20;
  const ConvolutionProblem gradient{.pass = ConvolutionPass::kBackwardWeight,
                                    .dtype = Dtype::kF16,
                                    .in = stem.padded().in,
                                    .weight = stem.padded().weight,
                                    .params = stem.params};
  EXPECT_GT(cudnn::make_plan(target, gradient, cudnn::kMaxWorkspace)->workspace_bytes(), kSmall);
  EXPECT_LE(cudnn::make_plan(target, gradient, kSmall)->workspace_bytes(), kSmall);
}

// A card of compute capability 7.5 has no bf16.
TEST(Plans, AHoleNamesTheCallAndWhatWouldDo) {
  using namespace kernels;
  std::string turing = find_gpu("a100").cudnn_properties;
  const std::string ampere = "\"deviceVer\":800";
  turing.replace(turing.find(ampere), ampere.size(), "\"deviceVer\":750");
  const cudnn::Target target = cudnn::Target::described_by(turing);
  const ConvolutionProblem problem{.pass = ConvolutionPass::kBackwardWeight,
                                   .dtype = Dtype::kBF16,
                                   .in = {256, 64, 56, 56},
                                   .weight = {64, 64, 3, 3},
                                   .params = {1, 1, 1, 1}};
  try {
    cudnn::make_plan(target, problem, cudnn::kMaxWorkspace);
    FAIL() << "there is a plan";
  } catch (const EnvironmentError& error) {
    EXPECT_STREQ(error.what(), "cuDNN has no plan for a convolution");
    EXPECT_THAT(error.why(),
                ::testing::StartsWith(
                    "backward weight bf16 256x64x56x56 -> 64, 3x3, stride 1, pad 1: no engine"));
    EXPECT_EQ(error.hint(), "f16 or f32, which has a plan");
  }
}

TEST(Fits, AsksForWholeRowsOf16Bytes) {
  using namespace kernels;
  const auto fits = [](const Shape& in, const Shape& weight, Dtype dtype) {
    return cudnn::fits({.dtype = dtype, .in = in, .weight = weight, .params = {}});
  };
  EXPECT_TRUE(fits({8, 8, 3, 3}, {8, 8, 1, 1}, Dtype::kF16));
  EXPECT_TRUE(fits({8, 3, 3, 3}, {8, 3, 1, 1}, Dtype::kF16));   // copied
  EXPECT_FALSE(fits({8, 4, 3, 3}, {8, 4, 1, 1}, Dtype::kF16));  // a row of in: 72 bytes
  EXPECT_TRUE(fits({8, 4, 3, 3}, {8, 4, 1, 1}, Dtype::kF32));   // 144
  EXPECT_FALSE(fits({8, 8, 3, 3}, {4, 8, 1, 1}, Dtype::kF16));  // of out: 72
  EXPECT_FALSE(fits({0, 8, 3, 3}, {8, 8, 1, 1}, Dtype::kF16));
}

TEST(Library, AnotherTextIsNoCard) {
  EXPECT_THROW(kernels::cudnn::Target::described_by("{}"), EnvironmentError);
}

}  // namespace
}  // namespace lockstep::trainers::model_plans_test
