#include "kernels/linear/linear.h"

#include "kernels/linear/linear_cublaslt.h"
#include "kernels/support/dispatch.h"

namespace lockstep::kernels {
void linear_forward(Stream& stream,
                    const Shards& shards,
                    const Tensor& in,
                    const Tensor& weight,
                    const Tensor& bias,
                    Tensor& out) {
  const OpCheck check("linear_forward", stream);
  check.floating("in", in);
  check.rank("in", in, 2);
  check.rank("weight", weight, 2);
  const int64_t images = in.shape()[0];
  const int64_t outputs = weight.shape()[0];
  check.like("weight", weight, {outputs, in.shape()[1]}, in.dtype());
  check.require(weight.numel() > 0, "at least one feature in and out");
  if (bias.defined()) check.like("bias", bias, {outputs}, Dtype::kF32);
  check.like("out", out, {images, outputs}, in.dtype());
  check.covers(shards, images);
  if (check.dry(2 * images * weight.numel(), bytes_of(in, weight, bias, out))) return;
  LS_DISPATCH_CUBLASLT(linear_forward, (stream, shards, in, weight, bias, out))
  LS_DISPATCH_ONEDNN(linear_forward, (stream, shards, in, weight, bias, out))
}

void linear_backward_data(Stream& stream,
                          const Shards& shards,
                          const Tensor& grad_out,
                          const Tensor& weight,
                          Tensor& grad_in) {
  const OpCheck check("linear_backward_data", stream);
  check.floating("weight", weight);
  check.rank("grad_out", grad_out, 2);
  check.rank("weight", weight, 2);
  const int64_t images = grad_out.shape()[0];
  check.require(weight.numel() > 0, "at least one feature in and out");
  check.like("grad_out", grad_out, {images, weight.shape()[0]}, weight.dtype());
  check.like("grad_in", grad_in, {images, weight.shape()[1]}, weight.dtype());
  check.covers(shards, images);
  if (check.dry(2 * images * weight.numel(), bytes_of(grad_out, weight, grad_in))) return;
  LS_DISPATCH_CUBLASLT(linear_backward_data, (stream, shards, grad_out, weight, grad_in))
  LS_DISPATCH_ONEDNN(linear_backward_data, (stream, shards, grad_out, weight, grad_in))
}

void linear_backward_weight(Stream& stream,
                            const Shards& shards,
                            const Tensor& in,
                            const Tensor& grad_out,
                            Tensor& grad_weight,
                            Tensor& grad_bias) {
  const OpCheck check("linear_backward_weight", stream);
  check.floating("in", in);
  check.rank("in", in, 2);
  check.rank("grad_out", grad_out, 2);
  const int64_t images = in.shape()[0];
  const int64_t outputs = grad_out.shape()[1];
  const int64_t weights = outputs * in.shape()[1];
  check.require(weights > 0, "at least one feature in and out");
  check.like("grad_out", grad_out, {images, outputs}, in.dtype());
  check.like("grad_weight", grad_weight, {shards.local(), weights}, Dtype::kF32);
  if (grad_bias.defined()) {
    check.like("grad_bias", grad_bias, {shards.local(), outputs}, Dtype::kF32);
  }
  check.covers(shards, images);
  if (check.dry(2 * images * weights, bytes_of(in, grad_out, grad_weight, grad_bias))) return;
  LS_DISPATCH_CUBLASLT(linear_backward_weight,
                       (stream, shards, in, grad_out, grad_weight, grad_bias))
  LS_DISPATCH_ONEDNN(linear_backward_weight, (stream, shards, in, grad_out, grad_weight, grad_bias))
}

}  // namespace lockstep::kernels
