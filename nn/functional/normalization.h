// One batch norm in a training step, with all that its gradient needs.
#pragma once

#include "nn/functional.h"

namespace lockstep::nn {

class Normalization {
 public:
  // Errors: as batch_norm(). x has the type that norms take.
  Normalization(const Var& x, const BatchNormState& norm);

  const Shards& shards() const { return shards_; }
  const Tensor& in() const { return in_; }
  bool groups_are_shards() const { return shards_.per_group() == 1; }

  // Takes the statistics, moves the running ones and normalizes. sums: NormInput's. residual may be
  // undefined.
  Tensor train(Stream& stream,
               const Tensor& sums,
               const Tensor& residual,
               kernels::BatchNormRunning& running);
  // Replaces train() for a convolution that normalizes, where groups are shards. Returns scales and
  // shifts (2, local shards, C) of in()'s type. running: null where it has moved already.
  Tensor affine(Stream& stream, const Tensor& sums, kernels::BatchNormRunning* running);
  // Normalizes once more, to the same bits.
  Tensor forward(Stream& stream, const Tensor& residual) const;

  // Inputs 0 to 3: in, weight, bias, residual. `gate` is the result where a residual went into
  // ReLU: grad_out is then gated in place, as it is where GELU follows. addend: undefined, or what
  // still belongs to grad_out, where `gate` is defined and groups are shards.
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
