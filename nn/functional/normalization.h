// One batch norm in a training step, with all that its gradient needs.
#pragma once

#include "nn/functional.h"

namespace lockstep::nn {

class Normalization {
 public:
  // Errors: as batch_norm(). Requires: x has been cast to the type that norms take.
  Normalization(const Var& x, const BatchNormState& norm);

  const Shards& shards() const { return shards_; }
  const Tensor& in() const { return in_; }
  bool groups_are_shards() const { return shards_.per_group() == 1; }

  // Computes the statistics, updates the running statistics and normalizes. sums: NormInput::sums.
  // residual may be undefined.
  Tensor train(Stream& stream,
               const Tensor& sums,
               const Tensor& residual,
               kernels::BatchNormRunning& running);
  // Replaces train() for a convolution that normalizes its input. Returns scales and shifts (2,
  // local shards, C) of in()'s type. running: null when it was updated already. Requires:
  // groups_are_shards().
  Tensor affine(Stream& stream, const Tensor& sums, kernels::BatchNormRunning* running);
  // Normalizes again, with the same bits.
  Tensor forward(Stream& stream, const Tensor& residual) const;

  // Inputs 0 to 3 of `grads`: in, weight, bias, residual. `gate`: the result, if a residual was
  // added before ReLU; grad_out is then multiplied by ReLU's derivative in place, as it is by
  // GELU's. addend: undefined, or the gradient of Forked::branch, to be added to grad_out; it may
  // be defined only if `gate` is and groups are shards.
  void backward(Stream& stream,
                const Tensor& gate,
                const Tensor& addend,
                Tensor& grad_out,
                Grads& grads) const;

 private:
  kernels::BatchNormShardArgs shard_args(const Tensor& sums, kernels::BatchNormRunning* running);

  Shards shards_;
  Tensor in_, weight_, bias_;
  kernels::BatchNormParams params_;
  Tensor stats_;
};

}  // namespace lockstep::nn
