// Parameters in a 16-bit type beside their f32 masters.
#pragma once

#include <span>

#include "core/stream.h"
#include "nn/module.h"

namespace lockstep::nn {

// Gives parameters the copies that convolutions and linear layers of this type read; biases and
// norms, which are read in f32, have none. Optimizers write them with the masters.
void add_copies(std::span<const NamedParameter> parameters, Dtype dtype);
// The copies become the masters' values, rounded: after these were written by others.
void refresh_copies(Stream& stream, std::span<const NamedParameter> parameters);

// The values become what `dtype` can hold, as if there were no masters.
void round_values(Stream& stream, std::span<const NamedParameter> parameters, Dtype dtype);

}  // namespace lockstep::nn
