#include <gmock/gmock.h>

#include "data/synthetic.h"
#include "tests/trainers/options_of.h"
#include "trainers/config/config_from_flags.h"
#include "trainers/planner/settle_engines.h"

namespace lockstep::trainers::run_convolutions_test {
namespace {

using kernels::ConvolutionPass;
using kernels::ConvolutionProblem;
using ::testing::ElementsAre;
using testing::options_of;

// ConvNet has two convolutions. The input images need no gradient, so a step makes 5 calls.
std::vector<ConvolutionProblem> convolutions(const std::string& flags,
                                             int64_t ranks = 1,
                                             const std::string& arch = "convnet") {
  const RunRequest request = make_run_request(options_of("--device cuda " + flags));
  const BatchDivision batch = divide_batch(request.batch, request.device, ranks, 1);
  const int channels = arch == "convnet" ? 1 : 3;
  const data::Synthetic test({.images = 90, .classes = 10, .shape = {channels, 28, 28}, .seed = 0});
  return run_convolutions(request, batch, usual_network(arch), test);
}

std::vector<int64_t> images_of(const std::vector<ConvolutionProblem>& problems) {
  std::vector<int64_t> images;
  for (const ConvolutionProblem& problem : problems) images.push_back(problem.in[0]);
  return images;
}

TEST(RunConvolutions, AreThoseOfAShardAndOfAChunk) {
  const auto problems = convolutions("-b 16 --shards 2 --val-batch-size 40");
  EXPECT_THAT(images_of(problems), ElementsAre(8, 8, 8, 8, 8, 40, 40));
  EXPECT_EQ(problems[0].text(), "forward f32 8x1x28x28 -> 16, 5x5, stride 1, pad 2, bias");
  EXPECT_EQ(problems[5].pass, ConvolutionPass::kForward);
}

TEST(RunConvolutions, ShardsOfTwoSizesAreListedOnEveryRank) {
  const auto problems = convolutions("--global-batch-size 20 --shards 8 --bn-groups 1", 2);
  const auto images = images_of(problems);
  EXPECT_THAT(std::vector(images.begin(), images.begin() + 10),
              ElementsAre(2, 2, 2, 2, 2, 3, 3, 3, 3, 3));
}

TEST(RunConvolutions, MicroStepsAndGroupsCutTheBatchFirst) {
  const auto problems = convolutions(
      "--global-batch-size 48 --batches-per-allreduce 2 --bn-groups 2 --shards 4 --val-batch-size "
      "6");
  EXPECT_THAT(images_of(problems), ElementsAre(6, 6, 6, 6, 6));  // the chunk has the same shapes
}

TEST(RunConvolutions, AnEvaluationHasTheChunksAlone) {
  const auto problems =
      convolutions("--evaluate --pretrained w.safetensors --val-batch-size 1000 --opt-level O2");
  EXPECT_THAT(images_of(problems), ElementsAre(90, 90));  // all available images
  EXPECT_EQ(problems[0].dtype, Dtype::kF16);
}

// resnet18 has 11 shapes. The stem with its three channels has no fused form.
TEST(RunConvolutions, WithBatchNormsAStepHasFusedForms) {
  const auto forms = [](const std::string& flags) {
    return std::ranges::count_if(
        convolutions("-b 16 --shards 2 " + flags, 1, "resnet18"),
        [](const ConvolutionProblem& problem) { return problem.is_fused(); });
  };
  EXPECT_EQ(forms("--opt-level O2 --bn-groups 2"), 3 * 10);
  EXPECT_EQ(forms("--opt-level O2 --bn-groups 1"), 0);
  EXPECT_EQ(forms("--opt-level O0 --bn-groups 2"), 0);
  EXPECT_EQ(forms("--opt-level O1 --bn-groups 2"), 0);
  EXPECT_EQ(forms("--opt-level O2 --dtype bf16 --bn-groups 2"), 0);
}

// Considers only the stem's forward calls. The evaluation's images have 28 pixels.
TEST(RunConvolutions, OfImagesThatGrowAreListedForEachSize) {
  RunRequest request = make_run_request(options_of("--device cuda -b 16 --shards 2 --epochs 9"));
  request.photos.train_ramp = {.from = 160, .first = 2, .last = 4};
  const BatchDivision batch = divide_batch(request.batch, request.device, 1, 1);
  const data::Synthetic test({.images = 90, .classes = 10, .shape = {3, 28, 28}, .seed = 0});
  const auto sides = [&] {
    std::vector<int64_t> found;
    for (const ConvolutionProblem& problem :
         run_convolutions(request, batch, usual_network("resnet18"), test)) {
      const bool stem = problem.weight[2] == 7 && problem.pass == ConvolutionPass::kForward;
      if (stem) found.push_back(problem.in[2]);
    }
    return found;
  };
  EXPECT_THAT(sides(), ElementsAre(160, 192, 224, 28));
  request.start_epoch = 3;
  EXPECT_THAT(sides(), ElementsAre(192, 224, 28));
}

}  // namespace
}  // namespace lockstep::trainers::run_convolutions_test
