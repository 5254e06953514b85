// PyTorch's default initialisation, bit for bit.
#pragma once

#include "nn/module.h"

namespace lockstep::nn {

// f32 of `shape`, drawn uniformly from (-1/sqrt(fan_in), 1/sqrt(fan_in)): row-major in PyTorch's
// order, then brought into the engine's layout. On the dry device nothing is drawn.
// Source: torch.nn.Conv2d and torch.nn.Linear, kaiming_uniform_(a=sqrt(5)) for weights.
Tensor default_weight(const Init& init, const Shape& shape, int64_t fan_in);
Tensor default_bias(const Init& init, int64_t size, int64_t fan_in);

}  // namespace lockstep::nn
