// PyTorch's initializations, drawn from its generator in its order.
#pragma once

#include "nn/module.h"

namespace lockstep::nn {

// Draw f32 tensors uniformly from (-1/sqrt(fan_in), 1/sqrt(fan_in)), bit for bit as PyTorch: in
// row-major order, then converted to the engine's layout. On the dry device nothing is drawn.
// Source: torch.nn.Conv2d and torch.nn.Linear, kaiming_uniform_(a=sqrt(5)) for weights.
Tensor default_weight(const Init& init, const Shape& shape, int64_t fan_in);
Tensor default_bias(const Init& init, int64_t size, int64_t fan_in);

// Which values keep their variance through a layer: activations (kIn: inputs per unit) or gradients
// (kOut: outputs times kernel area).
enum class Fan { kIn, kOut };
// Draws `weight` (K,C,R,S) or (O,K) from a normal distribution with mean 0 and variance
// 2 / fan, within 1.8e-6 standard deviations of PyTorch's. On the dry device nothing is drawn.
// Source: torch.nn.init.kaiming_normal_(nonlinearity="relu").
void kaiming_normal(const Init& init, Fan fan, Tensor& weight);

// Draws `weight` from a normal distribution with mean 0 and standard deviation `std`, with the same
// accuracy.
// Source: torch.nn.init.normal_.
void normal(const Init& init, double std, Tensor& weight);

// Makes filter k of `weight` (K,C,R,S) pass channel k on, for k < min(K,C): 1 at its center, which
// for an even size is the pixel after the middle, and 0 elsewhere. Other filters are unchanged.
// Source: torch.nn.init.dirac_ of weight[:C].
void dirac(const Init& init, Tensor& weight);

// Makes each filter of `weight` (C,1,3,3) a blur: [1,2,1] x [1,2,1] / 16.
void binomial(const Init& init, Tensor& weight);

// Sets every element.
void fill(const Init& init, float value, Tensor& tensor);

}  // namespace lockstep::nn
