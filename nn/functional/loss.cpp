#include <utility>

#include <fmt/core.h>

#include "core/error.h"
#include "kernels/loss/binary_cross_entropy.h"
#include "kernels/loss/softmax_cross_entropy.h"
#include "nn/functional.h"

namespace lockstep::nn {
namespace {

// Records a loss. forward(result, leaves) computes the losses, the target ranks and the loss per
// shard; backward(stream, gradient of the leaves, grad_logits) the gradient.
template <class Forward, class Backward>
CrossEntropy record_loss(const char* op, const Var& logits, Forward forward, Backward backward) {
  const Device device = logits.stream().device();
  const Shape images{logits.shape()[0]};
  CrossEntropy result{.loss = {},
                      .losses = Tensor::empty(images, Dtype::kF32, device),
                      .target_rank = Tensor::empty(images, Dtype::kI32, device)};
  Tensor leaves = Tensor::empty({logits.shards().local()}, Dtype::kF32, device);
  forward(result, leaves);
  result.loss =
      record(op,
             leaves,
             {logits},
             [backward = std::move(backward)](Stream& s, const Tensor& grad_loss, Grads& grads) {
               backward(s, grad_loss, grads.overwrite(0));
             });
  return result;
}

}  // namespace

CrossEntropy softmax_cross_entropy(const Var& logits,
                                   const Tensor& labels,
                                   const kernels::ClassLossParams& params) {
  const Tensor& scores = logits.value();
  const std::shared_ptr<const Batch>& batch = logits.shared_batch();
  return record_loss(
      "softmax_cross_entropy",
      logits,
      [&](CrossEntropy& figures, Tensor& leaves) {
        kernels::softmax_cross_entropy_forward(logits.stream(),
                                               batch->shards,
                                               {scores, labels, params},
                                               figures.losses,
                                               figures.target_rank,
                                               leaves);
      },
      [=](Stream& s, const Tensor& grad_loss, Tensor& grad_logits) {
        kernels::softmax_cross_entropy_backward(
            s, batch->shards, {scores, labels, params}, grad_loss, grad_logits);
      });
}

CrossEntropy binary_cross_entropy(const Var& logits,
                                  const Tensor& labels,
                                  const kernels::ClassLossParams& params,
                                  std::optional<float> target_threshold) {
  const Tensor& scores = logits.value();
  const std::shared_ptr<const Batch>& batch = logits.shared_batch();
  return record_loss(
      "binary_cross_entropy",
      logits,
      [&](CrossEntropy& figures, Tensor& leaves) {
        kernels::binary_cross_entropy_forward(logits.stream(),
                                              batch->shards,
                                              {scores, labels, params, target_threshold},
                                              figures.losses,
                                              figures.target_rank,
                                              leaves);
      },
      [=](Stream& s, const Tensor& grad_loss, Tensor& grad_logits) {
        kernels::binary_cross_entropy_backward(
            s, batch->shards, {scores, labels, params, target_threshold}, grad_loss, grad_logits);
      });
}

Var mse_loss(const Var& output, const Tensor& targets) {
  const Var x = cast(output, Dtype::kF32);
  const Tensor& values = x.value();
  const std::shared_ptr<const Batch>& batch = x.shared_batch();
  Stream& stream = x.stream();
  if (stream.device() == Device::kCuda) {
    throw UsageError("nn::mse_loss runs on the CPU alone",
                     "it has no CUDA kernel",
                     "Device::kCpu, or a LossFunction of your own");
  }
  if (targets.dtype() != Dtype::kF32) {
    throw DtypeError(
        fmt::format("[mse_loss] targets: dtype {}, expected f32", name_of(targets.dtype())));
  }
  if (values.numel() != targets.numel() || values.shape()[0] != targets.shape()[0]) {
    throw ShapeError(fmt::format("[mse_loss] targets: shape {}, expected the output's, {}",
                                 to_string(targets.shape()),
                                 to_string(values.shape())));
  }
  const int64_t row = values.shape().stride0();
  const double divisor = static_cast<double>(batch->shards.step_images * row);
  Tensor leaves = Tensor::empty({batch->shards.local()}, Dtype::kF32);
  // Calls body(i, difference) for each value of shard k.
  const auto differences = [=](int64_t k, auto&& body) {
    const float *at = values.data<float>(), *to = targets.data<float>();
    for (int64_t i = batch->shards.begin(k) * row; i < batch->shards.begin(k + 1) * row; ++i) {
      body(i, static_cast<double>(at[i]) - static_cast<double>(to[i]));
    }
  };
  stream.fork(leaves.numel(), [&](int64_t k, int) {
    double sum = 0;
    differences(k, [&](int64_t, double difference) { sum += difference * difference; });
    leaves.data<float>()[k] = static_cast<float>(sum / divisor);
  });
  return record("mse_loss", leaves, {x}, [=](Stream& s, const Tensor& grad_loss, Grads& grads) {
    float* const grad = grads.overwrite(0).data<float>();
    s.fork(grad_loss.numel(), [&](int64_t k, int) {
      const double scale = 2 * static_cast<double>(grad_loss.data<float>()[k]) / divisor;
      differences(k, [&](int64_t i, double difference) {
        grad[i] = static_cast<float>(scale * difference);
      });
    });
  });
}

}  // namespace lockstep::nn
