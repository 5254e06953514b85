// The casts that autocast makes of an op's input. Source: Apex's O1 lists.
#pragma once

#include "core/autograd.h"

namespace lockstep::nn {

// Without autocast x itself.
Var for_products(const Var& x);  // of convolutions and linear layers: 16 bits
Var for_norms(const Var& x);     // f32

}  // namespace lockstep::nn
