// Dropout: elements are zeroed at random, and the others are scaled so that the mean stays the
// same.
//   out = in * m        grad_in = grad_out * m        m = draw < p * 2^32 ? 0 : 1 / (1 - p)
// The draw for element j, in memory order, of image n is number j of the Philox stream of item
// images[n], with params.layer for its epoch (core/philox.h). No mask is stored: backward draws the
// same numbers again. m is rounded to f32, the product to the tensors' dtype.
//
// images[n] identifies image n in the whole run, such as epoch * data set size + index in the data
// set. Unlike rows and shards (core/shards.h) it does not depend on the rank or the micro-step.
// images is a tensor so that a recorded CUDA graph reads new values at each replay.
//
// p = 0 gives the input's bits, p = 1 zeros. As in PyTorch, a dropped element is multiplied by
// zero: NaN and infinity give NaN, and the result keeps the element's sign.
// Source: torch.nn.functional.dropout; Srivastava et al. 2014. Spec: tests/reference/dropout.h
#pragma once

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

struct DropoutParams {
  double p = 0.5;  // probability of dropping an element
  uint64_t seed = 0;
  uint32_t layer = 0;  // different for each dropout of a network
};

// Shapes: in (N,...) f32, f16 or bf16, at most 2^26 elements per image; images (N) i64; out as in,
// and it may be in. Errors: ShapeError (also unless 0 <= p <= 1), DtypeError, DeviceError.
using DropoutForward = void(Stream& stream,
                            const Tensor& in,
                            const Tensor& images,
                            const DropoutParams& params,
                            Tensor& out);
// Shapes: grad_out (N,...), grad_in as grad_out, and it may be grad_out.
using DropoutBackward = void(Stream& stream,
                             const Tensor& grad_out,
                             const Tensor& images,
                             const DropoutParams& params,
                             Tensor& grad_in);

LS_DECLARE_OP(DropoutForward, dropout_forward)
LS_DECLARE_OP(DropoutBackward, dropout_backward)

}  // namespace lockstep::kernels
