#include "bench/kernels/op_bench.h"
#include "kernels/optim/weight_averages.h"

namespace lockstep::bench {
namespace {

// Tensors, and elements of each.
const Cases kCases{.cpu = {kF32, {{10, 2903}, {62, 188575}}}, .cuda = {kF32, {{1, 25557032}}}};

const Bench kSync("lookahead_sync", kCases, [](Timer& t) {
  std::vector<kernels::LookaheadSlot> slots;
  for (int64_t i = 0; i < t[0]; ++i)
    slots.push_back({.param = t.random_f32({t[1]}), .slow = t.random_f32({t[1]})});
  t.run(16 * static_cast<size_t>(t[0] * t[1]),
        [&] { kernels::lookahead_sync(t.stream(), slots, {}); });
});

}  // namespace
}  // namespace lockstep::bench
