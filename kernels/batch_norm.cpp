#include "kernels/batch_norm.h"

#include "kernels/add.h"
#include "kernels/dispatch.h"
#include "kernels/op_check.h"

namespace lockstep::kernels {
namespace {

// Checks shared by the ops on a batch, and the extents that other arguments must have.
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
  // `touched` counts the batch tensors read and written, `alone` those that batch norm, addition
  // and ReLU would read and write as ops of their own.
  bool dry_batch(int64_t flops_per_element, int64_t touched, int64_t alone) const {
    const int64_t bytes = shape.numel() * static_cast<int64_t>(size_of(in_dtype));
    return dry_fused(flops_per_element * shape.numel(), touched * bytes, alone * bytes);
  }
  bool dry_forward(const BatchNormParams& params, bool has_residual) const {
    constexpr int64_t kNorm = 2, kAddition = 3, kRelu = 2;
    return dry_batch(has_residual ? 4 : 3,
                     has_residual ? 3 : 2,
                     kNorm + (has_residual ? kAddition : 0) + (params.relu ? kRelu : 0));
  }

  void groups_of_one() const { require(shards.per_group() == 1, "groups of one shard each"); }
  void sums_of_shards(const Tensor& sums) const {
    like("sums", sums, {2, shards.local(), shape[1]}, Dtype::kF32);
  }
  // Returns whether they are to follow the first shard.
  bool running_arguments(const Tensor& running_mean, const Tensor& running_var) const {
    const bool follows = running_mean.defined();
    require(follows == running_var.defined(), "running_mean and running_var, or neither");
    if (!follows) return false;
    per_channel("running_mean", running_mean);
    per_channel("running_var", running_var);
    require(shards.local() > 0 && shards.count(0) * pixels() >= 2,
            "two values a channel at least, for a variance");
    return true;
  }
  void forward_arguments(const Tensor& weight,
                         const Tensor& bias,
                         const Tensor& residual,
                         const Tensor& out) const {
    per_channel("weight", weight);
    per_channel("bias", bias);
    if (residual.defined()) like_in("residual", residual);
    like_in("out", out);
  }
  void sums_arguments(const Tensor& out,
                      const Tensor& grad_out,
                      const Tensor& group_stats,
                      const Tensor& weight,
                      const Tensor& bias,
                      const BatchNormParams& params,
                      const Tensor& grad_residual,
                      const Tensor& grad_weight,
                      const Tensor& grad_bias) const {
    like_in("grad_out", grad_out);
    require(out.defined() == grad_residual.defined(), "out and grad_residual, or neither");
    if (out.defined()) {
      require(params.relu, "out only where it is a gate of ReLU");
      like_in("out", out);
      like_in("grad_residual", grad_residual);
    }
    per_group("group_stats", group_stats, stats_columns());
    per_channel("weight", weight);
    per_channel("bias", bias);
    per_shard("grad_weight", grad_weight, shape[1]);
    per_shard("grad_bias", grad_bias, shape[1]);
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
  if (check.dry(4 * leaves.numel(), static_cast<int64_t>(leaves.nbytes() + merged.nbytes()))) {
    return;
  }
  LS_DISPATCH(batch_norm_merge_stats, (stream, leaves, pixels, merged))
}

void batch_norm_forward(Stream& stream,
                        const Shards& shards,
                        const Tensor& in,
                        const Tensor& group_stats,
                        const Tensor& weight,
                        const Tensor& bias,
                        const Tensor& residual,
                        const BatchNormParams& params,
                        Tensor& out) {
  const BatchCheck check("batch_norm_forward", stream, shards, in);
  check.per_group("group_stats", group_stats, check.stats_columns());
  check.forward_arguments(weight, bias, residual, out);
  if (check.dry_forward(params, residual.defined())) return;
  LS_DISPATCH(batch_norm_forward,
              (stream, shards, in, group_stats, weight, bias, residual, params, out))
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
  if (check.dry(6 * channels, static_cast<int64_t>(stats.nbytes() + 4 * running_mean.nbytes()))) {
    return;
  }
  if (stream.device() == Device::kCpu) {
    const float images = stats.data<float>()[2 * channels];
    check.require(images * static_cast<float>(pixels) >= 2,
                  "two values a channel at least, for a variance");
  }
  LS_DISPATCH(batch_norm_update_running,
              (stream, stats, pixels, momentum, running_mean, running_var))
}

void batch_norm_shard_sums(Stream& stream,
                           const Shards& shards,
                           const Tensor& in,
                           const Tensor& out,
                           const Tensor& grad_out,
                           const Tensor& group_stats,
                           const Tensor& weight,
                           const Tensor& bias,
                           const BatchNormParams& params,
                           Tensor& grad_residual,
                           Tensor& grad_weight,
                           Tensor& grad_bias) {
  const BatchCheck check("batch_norm_shard_sums", stream, shards, in);
  check.sums_arguments(
      out, grad_out, group_stats, weight, bias, params, grad_residual, grad_weight, grad_bias);
  if (check.dry_batch(params.relu ? 6 : 4, out.defined() ? 4 : 2, params.relu ? 5 : 2)) return;
  LS_DISPATCH(batch_norm_shard_sums,
              (stream,
               shards,
               in,
               out,
               grad_out,
               group_stats,
               weight,
               bias,
               params,
               grad_residual,
               grad_weight,
               grad_bias))
}

void batch_norm_backward(Stream& stream,
                         const Shards& shards,
                         const Tensor& in,
                         const Tensor& grad_out,
                         const Tensor& group_stats,
                         const Tensor& group_grad_weight,
                         const Tensor& group_grad_bias,
                         const Tensor& weight,
                         const Tensor& bias,
                         const BatchNormParams& params,
                         Tensor& grad_in) {
  const BatchCheck check("batch_norm_backward", stream, shards, in);
  check.like_in("grad_out", grad_out);
  check.per_group("group_stats", group_stats, check.stats_columns());
  check.per_group("group_grad_weight", group_grad_weight, in.shape()[1]);
  check.per_group("group_grad_bias", group_grad_bias, in.shape()[1]);
  check.per_channel("weight", weight);
  check.per_channel("bias", bias);
  check.like_in("grad_in", grad_in);
  if (check.dry_batch(params.relu ? 7 : 5, 3, 3)) return;
  LS_DISPATCH(batch_norm_backward,
              (stream,
               shards,
               in,
               grad_out,
               group_stats,
               group_grad_weight,
               group_grad_bias,
               weight,
               bias,
               params,
               grad_in))
}

void batch_norm_inference(Stream& stream,
                          const Shards& shards,
                          const Tensor& in,
                          const Tensor& running_mean,
                          const Tensor& running_var,
                          const Tensor& weight,
                          const Tensor& bias,
                          const Tensor& residual,
                          const BatchNormParams& params,
                          Tensor& out) {
  const BatchCheck check("batch_norm_inference", stream, shards, in);
  check.per_channel("running_mean", running_mean);
  check.per_channel("running_var", running_var);
  check.forward_arguments(weight, bias, residual, out);
  if (check.dry_forward(params, residual.defined())) return;
  LS_DISPATCH(batch_norm_inference,
              (stream, shards, in, running_mean, running_var, weight, bias, residual, params, out))
}

void batch_norm_shard_forward(Stream& stream,
                              const Shards& shards,
                              const Tensor& in,
                              const Tensor& sums,
                              const Tensor& weight,
                              const Tensor& bias,
                              const Tensor& residual,
                              const BatchNormParams& params,
                              float momentum,
                              Tensor& running_mean,
                              Tensor& running_var,
                              Tensor& stats,
                              Tensor& out) {
  const BatchCheck check("batch_norm_shard_forward", stream, shards, in);
  check.groups_of_one();
  check.forward_arguments(weight, bias, residual, out);
  check.per_shard("stats", stats, check.stats_columns());
  if (sums.defined()) check.sums_of_shards(sums);
  const bool follows = check.running_arguments(running_mean, running_var);
  LS_DISPATCH_CUDA(batch_norm_shard_forward,
                   (stream,
                    shards,
                    in,
                    sums,
                    weight,
                    bias,
                    residual,
                    params,
                    momentum,
                    running_mean,
                    running_var,
                    stats,
                    out))
  check.require(!sums.defined(), "sums on CUDA only");
  batch_norm_shard_stats(stream, shards, in, stats);
  if (follows) {
    const Tensor first = stats.slice(0, 1).view({check.stats_columns()});
    batch_norm_update_running(stream, first, check.pixels(), momentum, running_mean, running_var);
  }
  batch_norm_forward(stream, shards, in, stats, weight, bias, residual, params, out);
}

void batch_norm_shard_affine(Stream& stream,
                             const Shards& shards,
                             const Tensor& in,
                             const Tensor& sums,
                             const Tensor& weight,
                             const Tensor& bias,
                             [[maybe_unused]] const BatchNormParams& params,
                             [[maybe_unused]] float momentum,
                             Tensor& running_mean,
                             Tensor& running_var,
                             Tensor& stats,
                             Tensor& affine) {
  const BatchCheck check("batch_norm_shard_affine", stream, shards, in);
  check.groups_of_one();
  check.sums_of_shards(sums);
  check.per_channel("weight", weight);
  check.per_channel("bias", bias);
  check.per_shard("stats", stats, check.stats_columns());
  check.running_arguments(running_mean, running_var);
  check.floating("affine", affine);
  check.like("affine", affine, {2, shards.local(), in.shape()[1]}, affine.dtype());
  LS_DISPATCH_CUDA(batch_norm_shard_affine,
                   (stream,
                    shards,
                    in,
                    sums,
                    weight,
                    bias,
                    params,
                    momentum,
                    running_mean,
                    running_var,
                    stats,
                    affine))
  check.require(false, "a CUDA stream");
}

void batch_norm_shard_backward(Stream& stream,
                               const Shards& shards,
                               const Tensor& in,
                               const Tensor& out,
                               const Tensor& grad_out,
                               const Tensor& addend,
                               const Tensor& stats,
                               const Tensor& weight,
                               const Tensor& bias,
                               const BatchNormParams& params,
                               Tensor& grad_residual,
                               Tensor& grad_weight,
                               Tensor& grad_bias,
                               Tensor& grad_in) {
  const BatchCheck check("batch_norm_shard_backward", stream, shards, in);
  check.groups_of_one();
  check.sums_arguments(
      out, grad_out, stats, weight, bias, params, grad_residual, grad_weight, grad_bias);
  check.like_in("grad_in", grad_in);
  if (addend.defined()) {
    check.like_in("addend", addend);
    check.require(grad_residual.defined() && grad_residual.bytes() == grad_out.bytes(),
                  "an addend only where grad_residual is grad_out");
  }
  LS_DISPATCH_CUDA(batch_norm_shard_backward,
                   (stream,
                    shards,
                    in,
                    out,
                    grad_out,
                    addend,
                    stats,
                    weight,
                    bias,
                    params,
                    grad_residual,
                    grad_weight,
                    grad_bias,
                    grad_in))
  if (addend.defined() && !check.dry_batch(1, 1, 3)) add(stream, addend, grad_residual);
  batch_norm_shard_sums(stream,
                        shards,
                        in,
                        out,
                        grad_out,
                        stats,
                        weight,
                        bias,
                        params,
                        grad_residual,
                        grad_weight,
                        grad_bias);
  const bool gate = out.defined();
  batch_norm_backward(stream,
                      shards,
                      in,
                      gate ? grad_residual : grad_out,
                      stats,
                      grad_weight,
                      grad_bias,
                      weight,
                      bias,
                      {.eps = params.eps, .relu = params.relu && !gate},
                      grad_in);
}

}  // namespace lockstep::kernels
