#include "kernels/norm/batch_norm.h"

#include "kernels/elementwise/add.h"
#include "kernels/elementwise/gelu_rule.h"
#include "kernels/support/dispatch.h"

namespace lockstep::kernels {
namespace {

// Checks that the ops on a batch share, and the extents that other arguments must have.
struct BatchCheck : OpCheck {
  BatchCheck(std::string_view op, Stream& stream, const Shards& batch_shards, const Tensor& in)
      : OpCheck(op, stream), shards(batch_shards), shape(in.shape()), in_dtype(in.dtype()) {
    floating("in", in);
    require(shape.rank() == 2 || shape.rank() == 4, "in of shape (N,C,H,W) or (N,C)");
    for (int axis = 1; axis < shape.rank(); ++axis) {
      require(shape[axis] >= 1, "in has a channel and a pixel at least");
    }
    covers(shards, shape[0]);
  }

  void like_in(std::string_view name, const Tensor& tensor) const {
    like(name, tensor, shape, in_dtype);
  }
  void per_channel(std::string_view name, const Tensor& tensor) const {
    like(name, tensor, {shape[1]}, Dtype::kF32);
  }
  void per_shard(std::string_view name, const Tensor& tensor, int64_t columns) const {
    like(name, tensor, {shards.local(), columns}, Dtype::kF32);
  }
  void per_group(std::string_view name, const Tensor& tensor, int64_t columns) const {
    like(name, tensor, {shards.local_groups(), columns}, Dtype::kF32);
  }
  // `touched` is the number of batch tensors read and written, `alone` the number if batch norm,
  // addition and activation were separate ops.
  bool dry_batch(int64_t flops_per_element, int64_t touched, int64_t alone) const {
    const int64_t bytes = shape.numel() * static_cast<int64_t>(size_of(in_dtype));
    return dry_fused(flops_per_element * shape.numel(), touched * bytes, alone * bytes);
  }
  bool dry_forward(const BatchNormParams& params, bool has_residual) const {
    constexpr int64_t kNorm = 2, kAddition = 3, kActivation = 2;
    const bool activates = params.activation != Activation::kNone;
    const bool gelu = params.activation == Activation::kGelu;
    return dry_batch((has_residual ? 4 : 3) + (gelu ? gelu_flops(GeluForm::kErf) : 0),
                     has_residual ? 3 : 2,
                     kNorm + (has_residual ? kAddition : 0) + (activates ? kActivation : 0));
  }

  // Returns true if running statistics follow the first shard.
  bool shard_arguments(const BatchNormShardArgs& args) const {
    require(shards.per_group() == 1, "groups of one shard each");
    per_channel("weight", args.weight);
    per_channel("bias", args.bias);
    per_shard("stats", args.stats, stats_columns());
    if (args.sums.defined()) like("sums", args.sums, {2, shards.local(), shape[1]}, Dtype::kF32);
    if (args.running == nullptr) return false;
    per_channel("running_mean", args.running->mean);
    per_channel("running_var", args.running->var);
    require(shards.local() > 0 && shards.count(0) * pixels() >= 2,
            "at least two values per channel, for a variance");
    return true;
  }
  // Checks the arguments that forward and inference share.
  template <class Args>
  void forward_arguments(const Args& args) const {
    per_channel("weight", args.weight);
    per_channel("bias", args.bias);
    if (args.residual.defined()) {
      like_in("residual", args.residual);
      require(args.params.activation != Activation::kGelu,
              "no residual before GELU, whose slope is found again from in alone");
    }
    like_in("out", args.out);
  }
  void sums_arguments(const BatchNormSumsArgs& args) const {
    like_in("grad_out", args.grad_out);
    const bool gives_residual = args.grad_residual != nullptr && args.grad_residual->defined();
    if (args.params.activation == Activation::kGelu) {
      require(gives_residual && !args.out.defined(),
              "grad_residual and no out, where GELU follows");
    } else {
      require(args.out.defined() == gives_residual, "out and grad_residual, or neither");
    }
    if (args.out.defined()) {
      require(args.params.activation == Activation::kRelu, "out only where it is a gate of ReLU");
      like_in("out", args.out);
    }
    if (gives_residual) like_in("grad_residual", *args.grad_residual);
    per_group("group_stats", args.group_stats, stats_columns());
    per_channel("weight", args.weight);
    per_channel("bias", args.bias);
    per_shard("grad_weight", args.grad_weight, shape[1]);
    per_shard("grad_bias", args.grad_bias, shape[1]);
  }

  int64_t stats_columns() const { return 2 * shape[1] + 1; }
  int64_t pixels() const { return shape.rank() == 4 ? shape[2] * shape[3] : 1; }

  const Shards& shards;
  const Shape& shape;
  Dtype in_dtype;
};

}  // namespace

void batch_norm_shard_stats(Stream& stream, const Shards& shards, const Tensor& in, Tensor& stats) {
  const BatchCheck check("batch_norm_shard_stats", stream, shards, in);
  check.per_shard("stats", stats, check.stats_columns());
  if (check.dry_batch(4, 1, 1)) return;
  LS_DISPATCH(batch_norm_shard_stats, (stream, shards, in, stats))
}

void batch_norm_merge_stats(Stream& stream, const Tensor& leaves, int64_t pixels, Tensor& merged) {
  const OpCheck check("batch_norm_merge_stats", stream);
  check.dtype("leaves", leaves, {Dtype::kF32});
  check.rank("leaves", leaves, 2);
  const int64_t columns = leaves.shape()[1];
  check.require(leaves.shape()[0] >= 1 && columns % 2 == 1, "leaves of shape (M,2C+1), M >= 1");
  check.require(pixels >= 1, "pixels >= 1");
  check.like("merged", merged, {columns}, Dtype::kF32);
  if (check.dry(4 * leaves.numel(), bytes_of(leaves, merged))) return;
  LS_DISPATCH(batch_norm_merge_stats, (stream, leaves, pixels, merged))
}

void batch_norm_forward(Stream& stream, const Shards& shards, const BatchNormForwardArgs& args) {
  const BatchCheck check("batch_norm_forward", stream, shards, args.in);
  check.per_group("group_stats", args.group_stats, check.stats_columns());
  check.forward_arguments(args);
  if (check.dry_forward(args.params, args.residual.defined())) return;
  LS_DISPATCH(batch_norm_forward, (stream, shards, args))
}

void batch_norm_update_running(Stream& stream,
                               const Tensor& stats,
                               int64_t pixels,
                               float momentum,
                               Tensor& running_mean,
                               Tensor& running_var) {
  const OpCheck check("batch_norm_update_running", stream);
  check.dtype("running_mean", running_mean, {Dtype::kF32});
  check.rank("running_mean", running_mean, 1);
  const int64_t channels = running_mean.numel();
  check.like("running_var", running_var, {channels}, Dtype::kF32);
  check.like("stats", stats, {2 * channels + 1}, Dtype::kF32);
  if (check.dry(6 * channels,
                bytes_of(stats, running_mean, running_mean, running_var, running_var))) {
    return;
  }
  if (stream.device() == Device::kCpu) {
    const float images = stats.data<float>()[2 * channels];
    check.require(images * static_cast<float>(pixels) >= 2,
                  "at least two values per channel, for a variance");
  }
  LS_DISPATCH(batch_norm_update_running,
              (stream, stats, pixels, momentum, running_mean, running_var))
}

void batch_norm_shard_sums(Stream& stream, const Shards& shards, const BatchNormSumsArgs& args) {
  const BatchCheck check("batch_norm_shard_sums", stream, shards, args.in);
  check.sums_arguments(args);
  const bool activates = args.params.activation != Activation::kNone;
  const bool gelu = args.params.activation == Activation::kGelu;
  const int64_t flops = activates ? 6 + (gelu ? gelu_slope_flops(GeluForm::kErf) : 0) : 4;
  const int64_t touched = args.out.defined() ? 4 : gelu ? 3 : 2;
  if (check.dry_batch(flops, touched, activates ? 5 : 2)) return;
  LS_DISPATCH(batch_norm_shard_sums, (stream, shards, args))
}

void batch_norm_backward(Stream& stream, const Shards& shards, const BatchNormBackwardArgs& args) {
  const BatchCheck check("batch_norm_backward", stream, shards, args.in);
  check.like_in("grad_out", args.grad_out);
  check.per_group("group_stats", args.group_stats, check.stats_columns());
  check.per_group("group_grad_weight", args.group_grad_weight, args.in.shape()[1]);
  check.per_group("group_grad_bias", args.group_grad_bias, args.in.shape()[1]);
  check.per_channel("weight", args.weight);
  check.per_channel("bias", args.bias);
  check.like_in("grad_in", args.grad_in);
  check.require(args.params.activation != Activation::kGelu,
                "no GELU, since grad_out is what batch_norm_shard_sums wrote");
  if (check.dry_batch(args.params.activation == Activation::kRelu ? 7 : 5, 3, 3)) return;
  LS_DISPATCH(batch_norm_backward, (stream, shards, args))
}

void batch_norm_inference(Stream& stream,
                          const Shards& shards,
                          const BatchNormInferenceArgs& args) {
  const BatchCheck check("batch_norm_inference", stream, shards, args.in);
  check.per_channel("running_mean", args.running_mean);
  check.per_channel("running_var", args.running_var);
  check.forward_arguments(args);
  if (check.dry_forward(args.params, args.residual.defined())) return;
  LS_DISPATCH(batch_norm_inference, (stream, shards, args))
}

void batch_norm_shard_forward(Stream& stream,
                              const Shards& shards,
                              const BatchNormShardArgs& args,
                              const Tensor& residual,
                              Tensor& out) {
  const BatchCheck check("batch_norm_shard_forward", stream, shards, args.in);
  const bool follows = check.shard_arguments(args);
  const BatchNormForwardArgs forward = forward_args(args, residual, out);
  check.forward_arguments(forward);
  LS_DISPATCH_CUDA(batch_norm_shard_forward, (stream, shards, args, residual, out))
  check.require(!args.sums.defined(), "sums on CUDA only");
  batch_norm_shard_stats(stream, shards, args.in, args.stats);
  if (follows) {
    const Tensor first = args.stats.slice(0, 1).view({check.stats_columns()});
    BatchNormRunning& running = *args.running;
    batch_norm_update_running(
        stream, first, check.pixels(), running.momentum, running.mean, running.var);
  }
  batch_norm_forward(stream, shards, forward);
}

void batch_norm_shard_affine(Stream& stream,
                             const Shards& shards,
                             const BatchNormShardArgs& args,
                             Tensor& affine) {
  const BatchCheck check("batch_norm_shard_affine", stream, shards, args.in);
  check.shard_arguments(args);
  check.require(args.sums.defined(), "sums");
  check.require(args.params.activation != Activation::kGelu,
                "no GELU, since convolutions that normalize what they read apply ReLU alone");
  check.floating("affine", affine);
  check.like("affine", affine, {2, shards.local(), args.in.shape()[1]}, affine.dtype());
  LS_DISPATCH_CUDA(batch_norm_shard_affine, (stream, shards, args, affine))
  check.on(Device::kCuda);
}

void batch_norm_shard_backward(Stream& stream,
                               const Shards& shards,
                               const BatchNormSumsArgs& args,
                               const Tensor& addend,
                               Tensor& grad_in) {
  const BatchCheck check("batch_norm_shard_backward", stream, shards, args.in);
  check.require(shards.per_group() == 1, "groups of one shard each");
  check.sums_arguments(args);
  check.like_in("grad_in", grad_in);
  if (addend.defined()) {
    check.like_in("addend", addend);
    check.require(args.out.defined() && args.grad_residual->bytes() == args.grad_out.bytes(),
                  "an addend only where grad_residual is grad_out");
  }
  LS_DISPATCH_CUDA(batch_norm_shard_backward, (stream, shards, args, addend, grad_in))
  if (addend.defined() && !check.dry_batch(1, 1, 3)) add(stream, addend, *args.grad_residual);
  batch_norm_shard_sums(stream, shards, args);
  batch_norm_backward(stream, shards, backward_args(args, grad_in));
}

}  // namespace lockstep::kernels
