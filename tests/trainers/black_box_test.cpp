#include "engine/observe/black_box.h"

#include <gmock/gmock.h>

#include "nn/autocast.h"
#include "tests/trainers/tiny_run.h"
#include "trainers/debug/numerics_report.h"
#include "trainers/debug/planted_fault.h"

namespace lockstep::trainers::black_box_test {
namespace {

using ::testing::ElementsAre;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A step of TinyNet on six images of one channel, 4x4, in four of a batch's eight shards.
class BlackBoxTest : public ::testing::Test {
 protected:
  static Shards shards() {
    return {.offsets = {0, 2, 2, 4, 6}, .total = 8, .first = 4, .groups = 2, .step_images = 6};
  }

  void step(int64_t number, const Tensor& images, TapeListener* listener) {
    box_.begin_step(number);
    const Var x(images, nn::make_batch(stream_, shards(), true, {}, listener));
    box_.begin_micro_step(x);
    nn::softmax_cross_entropy(run_.model.forward(x), labels_).loss.backward();
    for (Var& parameter : run_.model.parameters()) parameter.set_grad({});
  }
  void step(int64_t number, const Tensor& images) { step(number, images, &box_); }
  void step_with(const std::string& fault) {
    LayerFault gradients(*parse_fault(fault), run_.model, 2);
    step(3, images(), gradients.listener(3, shards(), &box_));
  }
  static Tensor images() { return lockstep::testing::random_tensor({6, 1, 4, 4}, 1); }
  Tensor weight(size_t i) { return run_.model.parameters()[i].value(); }

  Stream stream_;
  testing::TinyRun run_{1};
  const Tensor labels_ = Tensor::zeros({6}, Dtype::kI32);
  BlackBox box_{stream_, run_.model};
};

TEST_F(BlackBoxTest, FindsNothingInASoundStep) {
  step(1, images());
  EXPECT_FALSE(box_.first());
}

TEST_F(BlackBoxTest, NamesTheInputAndItsImages) {
  Tensor bad = images();
  bad.data<float>()[3 * 16 + 5] = kNan;
  step(2, bad);
  const auto find = box_.first();
  ASSERT_TRUE(find);
  EXPECT_EQ(describe(*find), "the input images");
  EXPECT_EQ(find->type, "f32 (6,1,4,4)");
  EXPECT_EQ(find->count, 1);
  EXPECT_THAT(find->images, ElementsAre(3));
  EXPECT_THAT(find->shards, ElementsAre(4 + 2));
}

// Pixels of 3e38 are finite, but their products are not: one image gets infinities or NaNs.
TEST_F(BlackBoxTest, NamesTheOpThatOverflowed) {
  Tensor bad = images();
  for (float& pixel : bad.slice(5, 1).span<float>()) pixel = 3e38F;
  for (float& w : weight(0).span<float>()) w = 4;
  step(2, bad);
  const auto find = box_.first();
  ASSERT_TRUE(find);
  EXPECT_EQ(describe(*find), "conv (conv2d), forward: the output");
  EXPECT_EQ(find->step, 2);
  EXPECT_THAT(find->images, ElementsAre(5));
  EXPECT_THAT(find->shards, ElementsAre(4 + 3));
}

TEST_F(BlackBoxTest, NamesALayersGradient) {
  step_with("inf:rank=1,step=3,layer=bn");
  const auto find = box_.first();
  ASSERT_TRUE(find);
  EXPECT_EQ(describe(*find), "bn (batch_norm), backward: the gradient of its input");
  EXPECT_EQ(find->count, 2 * 16);
  EXPECT_THAT(find->images, ElementsAre(0)) << "rank 1 of 2 owns shards 4 to 7";
  EXPECT_THAT(find->shards, ElementsAre(4));
}

TEST_F(BlackBoxTest, NamesAParametersGradientAndItsShard) {
  step_with("inf:rank=1,step=3,layer=conv");
  const auto find = box_.first();
  ASSERT_TRUE(find);
  EXPECT_EQ(describe(*find), "conv (conv2d), backward: the gradient of conv.weight");
  EXPECT_EQ(find->type, "f32 (4,18)");
  EXPECT_EQ(find->count, 18);
  EXPECT_THAT(find->shards, ElementsAre(4));
  EXPECT_THAT(find->images, ElementsAre(0, 1));
}

TEST_F(BlackBoxTest, NamesAnOpWithoutParametersByTheLayerBefore) {
  step_with("inf:rank=1,step=3");
  const auto find = box_.first();
  ASSERT_TRUE(find);
  EXPECT_EQ(describe(*find), "softmax_cross_entropy after fc, backward: the gradient of its input");
}

TEST_F(BlackBoxTest, AFiniteValueIsNoFind) {
  step_with("inf:rank=1,step=3,layer=bn,value=1e5");
  EXPECT_FALSE(box_.first());
}

TEST_F(BlackBoxTest, AFaultOfAnotherRankOrStepStrikesNot) {
  for (const char* fault : {"inf:rank=0,step=3", "inf:rank=1,step=2", "inf:rank=1,step=4"}) {
    step_with(fault);
    EXPECT_FALSE(box_.first()) << fault;
  }
}

TEST_F(BlackBoxTest, NamesAWeight) {
  weight(1).data<float>()[0] = kNan;  // the bias of conv
  step(7, images());
  const auto find = box_.first();
  ASSERT_TRUE(find);
  EXPECT_EQ(describe(*find), "conv.bias before the step");
  EXPECT_EQ(find->layer, "conv");
  EXPECT_EQ(find->event, 1);
  EXPECT_THAT(find->shards, ElementsAre(4, 5, 6, 7));
  EXPECT_TRUE(find->images.empty());
}

// A weight that is finite in f32 and not in f16.
TEST_F(BlackBoxTest, NamesAWeightsSixteenBitCopy) {
  nn::add_copies(run_.model.named_parameters(), Dtype::kF16);
  weight(0).data<float>()[0] = 1e5F;
  nn::refresh_copies(stream_, run_.model.named_parameters());
  box_.begin_step(7);
  const auto find = box_.first();
  ASSERT_TRUE(find);
  EXPECT_EQ(describe(*find), "conv.weight before the step");
  EXPECT_EQ(find->type, "f16 (2,1,3,3)");
}

// While weights are not finite, the report names the original cause. Once they are finite again, it
// names nothing.
TEST_F(BlackBoxTest, KeepsTheCauseOfSpoiledWeights) {
  step_with("inf:rank=1,step=3,layer=fc");
  const float sound = weight(0).data<float>()[0];
  weight(0).data<float>()[0] = kNan;
  step(4, images());
  step(5, images());
  ASSERT_TRUE(box_.first());
  EXPECT_EQ(box_.first()->step, 3);
  EXPECT_EQ(box_.first()->layer, "fc");
  weight(0).data<float>()[0] = sound;
  step(6, images());
  EXPECT_FALSE(box_.first());
}

TEST(LayerFaultTest, RefusesALayerThatIsNotThere) {
  testing::TinyRun run(1);
  try {
    LayerFault(*parse_fault("inf:rank=0,step=1,layer=conv9"), run.model, 1);
    FAIL() << "no error";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "a fault strikes layer conv9");
    EXPECT_EQ(error.hint(), "one of conv, bn, fc");
  }
}

}  // namespace
}  // namespace lockstep::trainers::black_box_test
