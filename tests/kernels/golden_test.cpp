// Every op against PyTorch's results (tests/golden/, made by tools/make_golden.py).
#include "tests/support/golden.h"

#include <gtest/gtest.h>

#include "kernels/conv/conv2d.h"
#include "kernels/conv/depthwise_conv2d.h"
#include "kernels/elementwise/channel_gate.h"
#include "kernels/elementwise/copy.h"
#include "kernels/elementwise/gelu.h"
#include "kernels/elementwise/relu.h"
#include "kernels/linear/linear.h"
#include "kernels/loss/softmax_cross_entropy.h"
#include "kernels/norm/batch_norm.h"
#include "kernels/optim/sgd.h"
#include "kernels/pool/avg_pool2d.h"
#include "kernels/pool/max_pool2d.h"
#include "kernels/pool/subsample_pad.h"
#include "tests/support/close.h"

namespace lockstep::kernels::golden_test {
namespace {

using testing::close;
using testing::f32_sum;
using testing::golden_cases;
using testing::GoldenCase;
using testing::same_bits;

// The files hold normal draws: products of order four where f32_sum expects one.
::testing::AssertionResult near(const Tensor& got, const Tensor& want, int64_t terms) {
  return close(got.span<float>(), want.span<float>(), f32_sum(4 * terms));
}

int int_of(const GoldenCase& golden, const std::string& name) {
  return static_cast<int>(golden.number(name));
}

class Golden : public ::testing::Test {
 protected:
  Stream stream_{Device::kCpu, 2};
};

TEST_F(Golden, Conv2d) {
  for (const GoldenCase& golden : golden_cases("conv2d")) {
    SCOPED_TRACE(golden.name());
    const Tensor in = golden.tensor("input");
    const Tensor weight = golden.tensor("weight");
    const Tensor bias = golden.has("bias") ? golden.tensor("bias") : Tensor();
    const Tensor grad_out = golden.tensor("grad_out");
    const Conv2dParams params{int_of(golden, "stride_h"),
                              int_of(golden, "stride_w"),
                              int_of(golden, "pad_h"),
                              int_of(golden, "pad_w"),
                              int_of(golden, "groups")};
    const Shards shards = Shards::single(in.shape()[0]);

    Tensor out = Tensor::empty(grad_out.shape(), Dtype::kF32);
    conv2d_forward(stream_, shards, {in, weight, bias, params, out});
    EXPECT_TRUE(near(out, golden.tensor("out"), weight.shape().stride0()));
    Tensor grad_in = Tensor::empty(in.shape(), Dtype::kF32);
    conv2d_backward_data(stream_, shards, grad_out, weight, params, grad_in);
    EXPECT_TRUE(near(grad_in, golden.tensor("grad_in"), weight.numel() / weight.shape()[1]));
    Tensor grad_weight = Tensor::empty({1, weight.numel()}, Dtype::kF32);
    Tensor grad_bias = bias.defined() ? Tensor::empty({1, bias.numel()}, Dtype::kF32) : Tensor();
    conv2d_backward_weight(
        stream_, shards, {in, grad_out, weight.shape(), params, grad_weight, &grad_bias});
    const int64_t pixels = grad_out.numel() / grad_out.shape()[1];
    EXPECT_TRUE(near(grad_weight, golden.tensor("grad_weight"), pixels));
    if (bias.defined()) {
      EXPECT_TRUE(near(grad_bias, golden.tensor("grad_bias"), pixels));
    }
  }
}

TEST_F(Golden, DepthwiseConv2d) {
  for (const GoldenCase& golden : golden_cases("depthwise_conv2d")) {
    SCOPED_TRACE(golden.name());
    const Tensor in = golden.tensor("input");
    const Tensor weight = golden.tensor("weight");
    const Tensor grad_out = golden.tensor("grad_out");
    const Conv2dParams params{int_of(golden, "stride_h"),
                              int_of(golden, "stride_w"),
                              int_of(golden, "pad_h"),
                              int_of(golden, "pad_w")};
    const Shards shards = Shards::single(in.shape()[0]);
    const int64_t taps = weight.shape().stride0();
    Tensor out = Tensor::empty(grad_out.shape(), Dtype::kF32);
    depthwise_conv2d_forward(stream_, shards, in, weight, params, out);
    EXPECT_TRUE(near(out, golden.tensor("out"), taps));
    Tensor grad_in = Tensor::empty(in.shape(), Dtype::kF32);
    depthwise_conv2d_backward_data(stream_, shards, grad_out, weight, params, grad_in);
    EXPECT_TRUE(near(grad_in, golden.tensor("grad_in"), taps));
    Tensor grad_weight = Tensor::empty({1, weight.numel()}, Dtype::kF32);
    depthwise_conv2d_backward_weight(
        stream_, shards, {in, grad_out, weight.shape(), params, grad_weight});
    EXPECT_TRUE(
        near(grad_weight, golden.tensor("grad_weight"), grad_out.numel() / weight.shape()[0]));
  }
}

TEST_F(Golden, Linear) {
  for (const GoldenCase& golden : golden_cases("linear")) {
    SCOPED_TRACE(golden.name());
    const Tensor in = golden.tensor("input");
    const Tensor weight = golden.tensor("weight");
    const Tensor bias = golden.has("bias") ? golden.tensor("bias") : Tensor();
    const Tensor grad_out = golden.tensor("grad_out");
    const Shards shards = Shards::single(in.shape()[0]);

    Tensor out = Tensor::empty(grad_out.shape(), Dtype::kF32);
    linear_forward(stream_, shards, in, weight, bias, out);
    EXPECT_TRUE(near(out, golden.tensor("out"), in.shape()[1]));
    Tensor grad_in = Tensor::empty(in.shape(), Dtype::kF32);
    linear_backward_data(stream_, shards, grad_out, weight, grad_in);
    EXPECT_TRUE(near(grad_in, golden.tensor("grad_in"), weight.shape()[0]));
    Tensor grad_weight = Tensor::empty({1, weight.numel()}, Dtype::kF32);
    Tensor grad_bias = bias.defined() ? Tensor::empty({1, bias.numel()}, Dtype::kF32) : Tensor();
    linear_backward_weight(stream_, shards, in, grad_out, grad_weight, grad_bias);
    EXPECT_TRUE(near(grad_weight, golden.tensor("grad_weight"), in.shape()[0]));
    if (bias.defined()) {
      EXPECT_TRUE(near(grad_bias, golden.tensor("grad_bias"), in.shape()[0]));
    }
  }
}

TEST_F(Golden, BatchNorm) {
  for (const GoldenCase& golden : golden_cases("batch_norm")) {
    SCOPED_TRACE(golden.name());
    const Tensor in = golden.tensor("input");
    const Tensor weight = golden.tensor("weight");
    const Tensor bias = golden.tensor("bias");
    const Tensor grad_out = golden.tensor("grad_out");
    const Tensor residual = golden.has("residual") ? golden.tensor("residual") : Tensor();
    const BatchNormParams params{
        .eps = static_cast<float>(golden.number("eps")),
        .activation = golden.number("relu") != 0 ? Activation::kRelu : Activation::kNone};
    const Shards shards = Shards::single(in.shape()[0]);
    const int64_t channels = weight.numel();
    const int64_t count = in.numel() / channels;
    const int64_t pixels = count / in.shape()[0];
    // Far from zero the input itself carries f32's error, divided by the deviation.
    const double scale = golden.name() == "far_from_zero" ? 200 : 4;
    const testing::Tolerance tolerance{.rel = scale * 1e-5, .abs = scale * 1e-5};
    const auto expect = [&](const Tensor& got, const char* name) {
      EXPECT_TRUE(close(got.span<float>(), golden.tensor(name).span<float>(), tolerance)) << name;
    };

    Tensor stats = Tensor::empty({1, 2 * channels + 1}, Dtype::kF32);
    batch_norm_shard_stats(stream_, shards, in, stats);
    expect(stats.view({2 * channels + 1}).slice(0, channels), "mean");
    Tensor running_mean = golden.tensor("running_mean_before");
    Tensor running_var = golden.tensor("running_var_before");
    batch_norm_update_running(stream_,
                              stats.view({2 * channels + 1}),
                              pixels,
                              static_cast<float>(golden.number("momentum")),
                              running_mean,
                              running_var);
    expect(running_mean, "running_mean");
    expect(running_var, "running_var");

    Tensor out = Tensor::empty(in.shape(), Dtype::kF32);
    batch_norm_forward(stream_, shards, {in, stats, weight, bias, residual, params, out});
    expect(out, "out");
    Tensor grad_weight = Tensor::empty({1, channels}, Dtype::kF32);
    Tensor grad_bias = Tensor::empty({1, channels}, Dtype::kF32);
    const bool gated = residual.defined() && params.activation == Activation::kRelu;
    Tensor grad_residual = gated ? Tensor::empty(in.shape(), Dtype::kF32) : Tensor();
    const Tensor gate = gated ? out : Tensor();
    const BatchNormSumsArgs sums{.in = in,
                                 .out = gate,
                                 .grad_out = grad_out,
                                 .group_stats = stats,
                                 .weight = weight,
                                 .bias = bias,
                                 .params = params,
                                 .grad_residual = &grad_residual,
                                 .grad_weight = grad_weight,
                                 .grad_bias = grad_bias};
    batch_norm_shard_sums(stream_, shards, sums);
    expect(grad_weight, "grad_weight");
    expect(grad_bias, "grad_bias");
    if (gated) expect(grad_residual, "grad_residual");
    Tensor grad_in = Tensor::empty(in.shape(), Dtype::kF32);
    batch_norm_backward(stream_, shards, backward_args(sums, grad_in));
    expect(grad_in, "grad_in");
    Tensor eval_out = Tensor::empty(in.shape(), Dtype::kF32);
    batch_norm_inference(
        stream_, shards, {in, running_mean, running_var, weight, bias, residual, params, eval_out});
    expect(eval_out, "eval_out");
  }
}

TEST_F(Golden, ReluBitForBit) {
  for (const GoldenCase& golden : golden_cases("relu")) {
    SCOPED_TRACE(golden.name());
    const Tensor in = golden.tensor("input");
    Tensor out = Tensor::empty(in.shape(), Dtype::kF32);
    relu_forward(stream_, in, out);
    EXPECT_TRUE(close(out.span<float>(), golden.tensor("out").span<float>(), {}));
    Tensor grad_in = Tensor::empty(in.shape(), Dtype::kF32);
    relu_backward(stream_, out, golden.tensor("grad_out"), grad_in);
    EXPECT_TRUE(close(grad_in.span<float>(), golden.tensor("grad_in").span<float>(), {}));
  }
}

TEST_F(Golden, Gelu) {
  for (const GoldenCase& golden : golden_cases("gelu")) {
    SCOPED_TRACE(golden.name());
    const GeluForm form = golden.number("tanh") != 0 ? GeluForm::kTanh : GeluForm::kErf;
    const testing::Tolerance tolerance{.rel = 4e-7, .abs = 4e-7};
    const Tensor in = golden.tensor("input");
    Tensor out = Tensor::empty(in.shape(), Dtype::kF32);
    gelu_forward(stream_, in, form, out);
    EXPECT_TRUE(close(out.span<float>(), golden.tensor("out").span<float>(), tolerance));
    Tensor grad_in = Tensor::empty(in.shape(), Dtype::kF32);
    gelu_backward(stream_, in, golden.tensor("grad_out"), form, grad_in);
    EXPECT_TRUE(close(grad_in.span<float>(), golden.tensor("grad_in").span<float>(), tolerance));
  }
}

TEST_F(Golden, MaxPool2dWinnersToo) {
  for (const GoldenCase& golden : golden_cases("max_pool2d")) {
    SCOPED_TRACE(golden.name());
    const Tensor in = golden.tensor("input");
    const Tensor indices = golden.tensor("indices");
    const MaxPool2dParams params{int_of(golden, "kernel_h"),
                                 int_of(golden, "kernel_w"),
                                 int_of(golden, "stride_h"),
                                 int_of(golden, "stride_w"),
                                 int_of(golden, "pad_h"),
                                 int_of(golden, "pad_w")};
    const Shards shards = Shards::single(in.shape()[0]);
    Tensor out = Tensor::empty(indices.shape(), Dtype::kF32);
    Tensor winner = Tensor::empty(indices.shape(), Dtype::kU8);
    max_pool2d_forward(stream_, shards, in, params, out, winner);
    EXPECT_TRUE(close(out.span<float>(), golden.tensor("out").span<float>(), {}));

    const Shape& shape = out.shape();
    for (int64_t i = 0; i < out.numel(); ++i) {  // NHWC
      const int64_t ox = i / shape[1] % shape[3];
      const int64_t oy = i / shape[1] / shape[3] % shape[2];
      const int64_t tap = winner.data<uint8_t>()[i];
      const int64_t y = oy * params.stride_h - params.pad_h + tap / params.kernel_w;
      const int64_t x = ox * params.stride_w - params.pad_w + tap % params.kernel_w;
      EXPECT_EQ(y * in.shape()[3] + x, indices.data<int32_t>()[i]) << "element " << i;
    }

    Tensor grad_in = Tensor::empty(in.shape(), Dtype::kF32);
    max_pool2d_backward(stream_, shards, golden.tensor("grad_out"), winner, params, grad_in);
    EXPECT_TRUE(close(grad_in.span<float>(), golden.tensor("grad_in").span<float>(), {}));
  }
}

TEST_F(Golden, SubsamplePadBitForBit) {
  for (const GoldenCase& golden : golden_cases("subsample_pad")) {
    SCOPED_TRACE(golden.name());
    const Tensor in = golden.tensor("input");
    const Tensor want = golden.tensor("out");
    const Shards shards = Shards::single(in.shape()[0]);
    Tensor out = Tensor::empty(want.shape(), Dtype::kF32);
    subsample_pad_forward(stream_, shards, in, 2, out);
    EXPECT_TRUE(close(out.span<float>(), want.span<float>(), {}));
    Tensor grad_in = Tensor::empty(in.shape(), Dtype::kF32);
    subsample_pad_backward(stream_, shards, golden.tensor("grad_out"), 2, grad_in);
    EXPECT_TRUE(close(grad_in.span<float>(), golden.tensor("grad_in").span<float>(), {}));
  }
}

TEST_F(Golden, GlobalAvgPool) {
  for (const GoldenCase& golden : golden_cases("global_avg_pool")) {
    SCOPED_TRACE(golden.name());
    const Tensor in = golden.tensor("input");
    const Shards shards = Shards::single(in.shape()[0]);
    Tensor out = Tensor::empty({in.shape()[0], in.shape()[1]}, Dtype::kF32);
    global_avg_pool_forward(stream_, shards, in, out);
    EXPECT_TRUE(near(out, golden.tensor("out"), in.shape()[2] * in.shape()[3]));
    Tensor grad_in = Tensor::empty(in.shape(), Dtype::kF32);
    global_avg_pool_backward(stream_, shards, golden.tensor("grad_out"), grad_in);
    EXPECT_TRUE(near(grad_in, golden.tensor("grad_in"), 1));
  }
}

TEST_F(Golden, AdaptiveAvgPool2d) {
  for (const GoldenCase& golden : golden_cases("adaptive_avg_pool2d")) {
    SCOPED_TRACE(golden.name());
    const Tensor in = golden.tensor("input");
    const Tensor grad_out = golden.tensor("grad_out");
    const Shards shards = Shards::single(in.shape()[0]);
    const int64_t pixels = in.shape()[2] * in.shape()[3];
    Tensor out = Tensor::empty(grad_out.shape(), Dtype::kF32);
    adaptive_avg_pool2d_forward(stream_, shards, in, out);
    EXPECT_TRUE(near(out, golden.tensor("out"), pixels));
    Tensor grad_in = Tensor::empty(in.shape(), Dtype::kF32);
    adaptive_avg_pool2d_backward(stream_, shards, grad_out, grad_in);
    const int64_t windows = grad_out.shape()[2] * grad_out.shape()[3];
    EXPECT_TRUE(near(grad_in, golden.tensor("grad_in"), windows));
  }
}

TEST_F(Golden, ChannelGate) {
  for (const GoldenCase& golden : golden_cases("channel_gate")) {
    SCOPED_TRACE(golden.name());
    const Tensor in = golden.tensor("input");
    const Tensor gate = golden.tensor("gate");
    const Tensor grad_out = golden.tensor("grad_out");
    const GateForm form =
        golden.number("sigmoid") != 0 ? GateForm::kSigmoid : GateForm::kHardSigmoid;
    const Shards shards = Shards::single(in.shape()[0]);
    Tensor out = Tensor::empty(in.shape(), Dtype::kF32);
    channel_gate_forward(stream_, shards, in, gate, form, out);
    EXPECT_TRUE(near(out, golden.tensor("out"), 1));
    Tensor grad_in = Tensor::empty(in.shape(), Dtype::kF32);
    Tensor grad_gate = Tensor::empty(gate.shape(), Dtype::kF32);
    channel_gate_backward(stream_, shards, {grad_out, in, gate, form, grad_in, grad_gate});
    EXPECT_TRUE(near(grad_in, golden.tensor("grad_in"), 1));
    EXPECT_TRUE(near(grad_gate, golden.tensor("grad_gate"), in.shape()[2] * in.shape()[3]));
  }
}

TEST_F(Golden, SoftmaxCrossEntropy) {
  for (const GoldenCase& golden : golden_cases("cross_entropy")) {
    SCOPED_TRACE(golden.name());
    const Tensor logits = golden.tensor("logits");
    const Tensor wide_labels = golden.tensor("labels");
    const int64_t n = logits.shape()[0];
    Tensor labels = Tensor::empty({n}, Dtype::kI32);
    for (int64_t i = 0; i < n; ++i) {
      labels.data<int32_t>()[i] = static_cast<int32_t>(wide_labels.data<int64_t>()[i]);
    }
    Shards shards = Shards::single(n);
    shards.step_images = golden.text("reduction") == "mean" ? n : 1;
    const ClassLossParams params{.label_smoothing =
                                     static_cast<float>(golden.number("label_smoothing"))};
    Tensor losses = Tensor::empty({n}, Dtype::kF32);
    Tensor target_rank = Tensor::empty({n}, Dtype::kI32);
    Tensor loss = Tensor::empty({1}, Dtype::kF32);
    softmax_cross_entropy_forward(
        stream_, shards, {logits, labels, params}, losses, target_rank, loss);
    EXPECT_TRUE(near(loss, golden.tensor("loss"), n));
    Tensor ones = Tensor::empty({1}, Dtype::kF32);
    *ones.data<float>() = 1;
    Tensor grad = Tensor::empty(logits.shape(), Dtype::kF32);
    softmax_cross_entropy_backward(stream_, shards, {logits, labels, params}, ones, grad);
    EXPECT_TRUE(near(grad, golden.tensor("grad_logits"), 1));
  }
}

TEST_F(Golden, SgdStepByStep) {
  for (const GoldenCase& golden : golden_cases("sgd")) {
    SCOPED_TRACE(golden.name());
    Tensor param = golden.tensor("param_before");
    const Tensor grads = golden.tensor("grads");
    const Tensor want = golden.tensor("params");
    const auto momentum = static_cast<float>(golden.number("momentum"));
    Tensor buffer = momentum != 0 ? Tensor::zeros(param.shape(), Dtype::kF32) : Tensor();
    for (int64_t step = 0; step < grads.shape()[0]; ++step) {
      std::vector<SgdSlot> slots = {
          {.param = param, .grad = grads.slice(step, 1).view(param.shape()), .momentum = buffer}};
      sgd_step(stream_,
               slots,
               {.lr = static_cast<float>(golden.number("lr/" + std::to_string(step))),
                .momentum = momentum,
                .weight_decay = static_cast<float>(golden.number("weight_decay")),
                .nesterov = golden.number("nesterov") != 0});
      EXPECT_TRUE(close(param.span<float>(), want.slice(step, 1).span<float>(), {1e-6, 1e-7}));
    }
  }
}

TEST_F(Golden, CastBitForBit) {
  const GoldenCase golden = golden_cases("cast").front();
  const Tensor in = golden.tensor("input");
  Tensor half = Tensor::empty(in.shape(), Dtype::kF16);
  Tensor brain = Tensor::empty(in.shape(), Dtype::kBF16);
  cast(stream_, in, half);
  cast(stream_, in, brain);
  for (int64_t i = 0; i < in.numel(); ++i) {
    const float value = in.data<float>()[i];
    if (value != value) {
      EXPECT_GT(half.data<Half>()[i].bits & 0x7fff, 0x7c00) << value;
      EXPECT_GT(brain.data<BFloat16>()[i].bits & 0x7fff, 0x7f80) << value;
      continue;
    }
    EXPECT_EQ(half.data<Half>()[i].bits, golden.tensor("f16_bits").data<int32_t>()[i]) << value;
    EXPECT_EQ(brain.data<BFloat16>()[i].bits, golden.tensor("bf16_bits").data<int32_t>()[i])
        << value;
  }
}

}  // namespace
}  // namespace lockstep::kernels::golden_test
