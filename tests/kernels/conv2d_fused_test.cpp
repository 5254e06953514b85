// Which layers may be fused, and which are; off CUDA none is. Results: tests/cuda.
#include "kernels/conv/conv2d_fused.h"

#include <gtest/gtest.h>

namespace lockstep::kernels::conv2d_fused_test {
namespace {

const ConvolutionProblem kLayer{
    .dtype = Dtype::kF16, .in = {32, 8, 6, 6}, .weight = {16, 8, 3, 3}, .params = {1, 1, 1, 1}};

TEST(Conv2dFused, FormsOfALayer) {
  const std::vector<ConvolutionProblem> forms = fused_forms(kLayer);
  ASSERT_EQ(forms.size(), 3U);
  for (const ConvolutionProblem& form : forms) {
    EXPECT_TRUE(form.is_fused());
    EXPECT_EQ(form.in, kLayer.in);
    EXPECT_EQ(form.gives_sums, form.pass == ConvolutionPass::kForward);
  }
  EXPECT_FALSE(forms[0].norms_in);
  EXPECT_EQ(forms[1].pass, ConvolutionPass::kBackwardWeight);
  EXPECT_TRUE(forms[1].norms_in && forms[2].norms_in);
}

TEST(Conv2dFused, LayersWithoutForms) {
  ConvolutionProblem layer = kLayer;
  layer.dtype = Dtype::kBF16;
  EXPECT_TRUE(fused_forms(layer).empty());
  layer = kLayer;
  layer.has_bias = true;
  EXPECT_TRUE(fused_forms(layer).empty());
  layer = kLayer;
  layer.pass = ConvolutionPass::kBackwardData;
  EXPECT_TRUE(fused_forms(layer).empty());
  layer = kLayer;
  layer.in = {32, 12, 6, 6};
  EXPECT_TRUE(fused_forms(layer).empty());
  layer = kLayer;
  layer.weight = {12, 8, 3, 3};
  EXPECT_TRUE(fused_forms(layer).empty());
}

TEST(Conv2dFused, ALayersFormIsChosenForAnyNumberOfImages) {
  Stream stream;
  ConvolutionProblem form = kLayer;
  form.gives_sums = true;
  EXPECT_FALSE(is_chosen(stream, form));
  choose_form(stream, form);
  form.in = {3, 8, 6, 6};
  EXPECT_TRUE(is_chosen(stream, form));
  form.norms_in = true;
  EXPECT_FALSE(is_chosen(stream, form));
  form.norms_in = false;
  form.in = {3, 8, 7, 6};
  EXPECT_FALSE(is_chosen(stream, form));
}

TEST(Conv2dFused, RefusesOtherDevices) {
  Stream stream;
  const Tensor in = Tensor::zeros({1, 8, 4, 4}, Dtype::kF32);
  const Tensor weight = Tensor::zeros({8, 8, 1, 1}, Dtype::kF32);
  const Tensor affine = Tensor::zeros({2, 1, 8}, Dtype::kF32);
  Tensor out = Tensor::zeros(in.shape(), Dtype::kF32);
  Tensor sums = Tensor::zeros({2, 1, 8}, Dtype::kF32);
  Tensor grad_weight = Tensor::zeros({1, 64}, Dtype::kF32);
  EXPECT_THROW(
      conv2d_fused_forward(
          stream, Shards::single(1), {.in = in, .weight = weight, .out = out}, affine, sums),
      DeviceError);
  EXPECT_THROW(conv2d_fused_backward_weight(
                   stream, Shards::single(1), {in, out, weight.shape(), {}, grad_weight}, affine),
               DeviceError);
}

}  // namespace
}  // namespace lockstep::kernels::conv2d_fused_test
