#include "nn/squeeze_excite.h"

namespace lockstep::nn {

SqueezeExcite::SqueezeExcite(const Init& init, int64_t channels, int64_t reduced)
    : reduce_(init, channels, reduced), expand_(init, reduced, channels) {
  register_module("conv_reduce", reduce_);
  register_module("conv_expand", expand_);
}

Var SqueezeExcite::forward(const Var& x) {
  return channel_gate(x, expand_.forward(relu(reduce_.forward(global_avg_pool(x)))));
}

}  // namespace lockstep::nn
