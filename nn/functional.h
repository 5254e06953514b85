// The differentiable operations: kernels on the tape.
//
// Each takes activations (Vars that carry a Batch) and parameters (leaf Vars), allocates the
// result, runs the kernel and records the gradient. Shapes and errors are those of the kernel's
// header.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "core/autograd.h"
#include "kernels/conv/conv2d.h"
#include "kernels/elementwise/channel_gate.h"
#include "kernels/elementwise/gelu.h"
#include "kernels/image/normalize_image.h"
#include "kernels/loss/softmax_cross_entropy.h"
#include "kernels/norm/batch_norm.h"
#include "kernels/pool/max_pool2d.h"

#pragma GCC visibility push(default)
namespace lockstep::nn {

// Makes the Batch that all activations of one micro-step share. `stream` and `listener` must
// outlive them.
std::shared_ptr<const Batch> make_batch(Stream& stream,
                                        Shards shards,
                                        bool recording = true,
                                        const Precision& precision = {},
                                        TapeListener* listener = nullptr,
                                        Draws draws = {});

// u8 images (N,C,H,W) to precision.images: the root of a tape.
Var normalize_image(const Tensor& images,
                    std::shared_ptr<const Batch> batch,
                    const kernels::NormalizeImageParams& params = {});

// Crops and flips at random, then normalizes. indices (N) i64: each image's index in the data set.
Var crop_flip_normalize(const Tensor& images,
                        const Tensor& indices,
                        std::shared_ptr<const Batch> batch,
                        const kernels::CropFlipNormalizeParams& params);

// Converts x to another float type; returns x itself if it has that type.
Var cast(const Var& x, Dtype dtype);

// bias may be undefined.
Var conv2d(const Var& x, const Var& weight, const Var& bias, const kernels::Conv2dParams& params);

// weight (C,1,R,S).
Var depthwise_conv2d(const Var& x, const Var& weight, const kernels::Conv2dParams& params);

// x (N,...) is flattened to rows; weight (O,...) has as many elements per row. bias may be
// undefined. Errors: ShapeError for images of several channels and pixels with a weight (O,K).
Var linear(const Var& x, const Var& weight, const Var& bias);

// The images that are normalized together: those of each group of the batch, or all images of all
// ranks.
enum class BatchNormGroups : uint8_t { kPerGroup, kOne };
using kernels::Activation;  // of batch norms
// The parameters and statistics of one batch norm.
struct BatchNormState {
  Var weight, bias;                   // (C)
  kernels::BatchNormRunning running;  // training steps update it
  kernels::BatchNormParams params = {};
  BatchNormGroups groups = BatchNormGroups::kPerGroup;
};
// The input of a batch norm.
struct NormInput {
  Var value;
  Tensor sums = {};  // sums per channel, if a fused convolution gave them (nn/conv_norm.h)
};
// A value with two consumers: one uses `value`, the other `branch`. `branch` is the same value, or
// a leaf with that value; in the latter case the op that computed the value reads both gradients
// and adds them itself.
struct Forked {
  Var value, branch;
};
inline Forked unforked(const Var& x) {
  return {x, x};
}
// Normalizes each group's images by the group's statistics, across ranks if a group spans them.
// Running statistics follow group 0 in the first micro-step of each optimizer step: only ranks that
// own a part of group 0 update theirs.
// Errors: also ShapeError when a group of this rank has one value per channel, or spans ranks while
// the batch has no peers.
Var batch_norm(const NormInput& x, BatchNormState& norm);
// Normalizes and adds a residual, like x, before the activation. Errors: also ShapeError for GELU.
Forked batch_norm(const NormInput& x, BatchNormState& norm, const Var& residual);
// Normalizes with the running statistics; not differentiable. residual may be undefined.
Var batch_norm_inference(const Var& x, const BatchNormState& norm, const Var& residual = {});

Var relu(const Var& x);
Var gelu(const Var& x, kernels::GeluForm form = kernels::GeluForm::kErf);
Var add(const Var& a, const Var& b);
Var scale(const Var& x, float factor);  // in f32
// Draws from the batch's Draws. `layer` is different for each dropout of a network. Errors: also
// InternalError when the batch has no Draws.
Var dropout(const Var& x, double p, uint32_t layer);
// relu(branch + shortcut), where each image's branch is left out with probability p, drawn from the
// batch's Draws and `block`. Exact rule: kernels/random/stochastic_depth.h. Errors: as dropout.
Var stochastic_depth(const Var& branch, const Var& shortcut, double p, uint32_t block);
Var max_pool2d(const Var& x, const kernels::MaxPool2dParams& params);
Var global_avg_pool(const Var& x);  // (N,C,H,W) -> (N,C)
// (N,C,H,W) -> (N,C,height,width). Returns x itself if it has that size.
Var adaptive_avg_pool2d(const Var& x, int64_t height, int64_t width);
// (N,A,H,W) and (N,B,H,W) -> (N,A+B,H,W).
Var concat_channels(const Var& a, const Var& b);
// x (N,C,H,W) times a sigmoid of gate (N,C), which is cast to x's type.
Var channel_gate(const Var& x, const Var& gate, kernels::GateForm form);
// Takes every second pixel of every second row, and adds (channels - C) / 2 channels of zeros on
// each side.
Var subsample_pad(const Var& x, int64_t channels);

struct CrossEntropy {
  Var loss;            // (local shards): leaves of the sum that is the optimizer step's mean loss
  Tensor losses;       // (N) f32
  Tensor target_rank;  // (N) i32; the prediction is in the top k when it is below k
};
// logits (N,classes) f32, f16 or bf16; labels (N) i32.
CrossEntropy softmax_cross_entropy(const Var& logits,
                                   const Tensor& labels,
                                   const kernels::ClassLossParams& params = {});
// Applies a sigmoid to each class. With a threshold, targets above it are 1 and all others 0. Exact
// rule: kernels/loss/binary_cross_entropy.h
CrossEntropy binary_cross_entropy(const Var& logits,
                                  const Tensor& labels,
                                  const kernels::ClassLossParams& params = {},
                                  std::optional<float> target_threshold = {});

// A loss of the caller's. Returns (local shards) f32 on the output's tape: leaves of the sum that
// is the optimizer step's mean loss, so each is its shard's sum over shards().step_images.
// `targets`: labels (N) i32, or a data set's targets (N,K) f32.
using LossFunction = std::function<Var(const Var& output, const Tensor& targets)>;

// The mean of squared differences, over samples and values: a LossFunction. Takes f32, f16 or bf16
// and computes in f32 or wider. Shapes: output (N,K); targets (N,K) or, for K = 1, (N). Errors:
// ShapeError; DtypeError; UsageError on CUDA, where it has no kernel.
Var mse_loss(const Var& output, const Tensor& targets);

}  // namespace lockstep::nn
#pragma GCC visibility pop
