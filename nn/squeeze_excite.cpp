#include "nn/squeeze_excite.h"

#include <algorithm>

namespace lockstep::nn {

int64_t nearest_multiple(double count, int64_t divisor, double limit) {
  const int64_t half = divisor / 2;
  const int64_t nearest =
      static_cast<int64_t>(count + static_cast<double>(half)) / divisor * divisor;
  const int64_t multiple = std::max(divisor, nearest);
  return static_cast<double>(multiple) < limit * count ? multiple + divisor : multiple;
}

SqueezeExcite::SqueezeExcite(const Init& init, const SqueezeExciteOptions& options)
    : gate_(options.gate),
      reduce_(init, options.channels, options.reduced),
      expand_(init, options.reduced, options.channels) {
  register_module(options.reduce_name, reduce_);
  register_module(options.expand_name, expand_);
}

Var SqueezeExcite::forward(const Var& x) {
  return channel_gate(x, expand_.forward(relu(reduce_.forward(global_avg_pool(x)))), gate_);
}

}  // namespace lockstep::nn
