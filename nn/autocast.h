// 16-bit types beside f32: the casts of autocast, and 16-bit copies of f32 master parameters.
#pragma once

#include <span>

#include "core/autograd.h"
#include "core/stream.h"
#include "nn/module.h"

namespace lockstep::nn {

// Cast an op's input as autocast demands; without autocast they return x itself. Source: Apex's O1
// lists.
Var cast_for_products(const Var& x);  // of convolutions and linear layers: 16 bits
Var cast_for_norms(const Var& x);     // f32

// The value of `weight`, or its copy, that has the type of x. Updates a derived copy first. Errors:
// DtypeError when neither has that type.
const Tensor& weight_for(const Var& x, const Var& weight);

// Gives parameters the copies that convolutions and linear layers of this type read. Biases and
// norm parameters are read in f32 and get none. Optimizers update the copies with the master
// values.
void add_copies(std::span<const NamedParameter> parameters, Dtype dtype);
// Sets the copies to the master values, rounded. Call it after code other than an optimizer changed
// the master values.
void refresh_copies(Stream& stream, std::span<const NamedParameter> parameters);

// Rounds the parameters' values to `dtype`, as if there were no f32 master values.
void round_values(Stream& stream, std::span<const NamedParameter> parameters, Dtype dtype);

}  // namespace lockstep::nn
