// Argument checks that the classification losses share.
#pragma once

#include "kernels/loss/softmax_cross_entropy.h"
#include "kernels/support/op_check.h"

namespace lockstep::kernels {

// Errors: ShapeError, DtypeError, DeviceError.
void check_loss_inputs(const OpCheck& check,
                       const Shards& shards,
                       const Tensor& logits,
                       const Tensor& labels,
                       const ClassLossParams& params);

// Only for the CPU, since the labels of a CUDA stream may not have been computed yet. Errors:
// DataError.
void check_labels(const char* op, const Tensor& labels, int64_t classes);

}  // namespace lockstep::kernels
