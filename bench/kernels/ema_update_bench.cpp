#include "bench/kernels/op_bench.h"
#include "kernels/optim/weight_averages.h"

namespace lockstep::bench {
namespace {

// Tensors, and elements of each.
const Cases kCases{.cpu = {kF32, {{10, 2903}, {62, 188575}}}, .cuda = {kF32, {{1, 25557032}}}};

const Bench kUpdate("ema_update", kCases, [](Timer& t) {
  std::vector<kernels::EmaSlot> slots;
  for (int64_t i = 0; i < t[0]; ++i)
    slots.push_back({.param = t.random_f32({t[1]}), .ema = t.random_f32({t[1]})});
  t.run(12 * static_cast<size_t>(t[0] * t[1]), [&] { kernels::ema_update(t.stream(), slots, {}); });
});

}  // namespace
}  // namespace lockstep::bench
