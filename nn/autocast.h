// 16-bit types beside f32: the casts of autocast, and 16-bit copies of f32 master parameters.
#pragma once

#include <span>

#include "core/autograd.h"
#include "core/stream.h"
#include "nn/module.h"

namespace lockstep::nn {

// Casts of an op's input. Without autocast x itself. Source: Apex's O1 lists.
Var for_products(const Var& x);  // of convolutions and linear layers: 16 bits
Var for_norms(const Var& x);     // f32

// Gives parameters the copies that convolutions and linear layers of this type read; biases and
// norms, which are read in f32, have none. Optimizers write them with the masters.
void add_copies(std::span<const NamedParameter> parameters, Dtype dtype);
// The copies become the masters' values, rounded: after these were written by others.
void refresh_copies(Stream& stream, std::span<const NamedParameter> parameters);

// The values become what `dtype` can hold, as if there were no masters.
void round_values(Stream& stream, std::span<const NamedParameter> parameters, Dtype dtype);

}  // namespace lockstep::nn
