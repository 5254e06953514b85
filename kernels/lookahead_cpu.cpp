#include "kernels/lookahead.h"
#include "kernels/multi_tensor.h"

namespace lockstep::kernels::LS_CPU {
namespace {

void meet(float* __restrict param, float* __restrict slow, int64_t n, float alpha) {
  for (int64_t i = 0; i < n; ++i) {
    const float met = slow[i] + (param[i] - slow[i]) * alpha;
    slow[i] = met;
    param[i] = met;
  }
}

}  // namespace

void lookahead_sync(Stream& stream, std::span<LookaheadSlot> slots, float alpha) {
  for_slots(stream, slots, [&](LookaheadSlot& slot, int64_t first, int64_t count) {
    meet(slot.param.data<float>() + first, slot.slow.data<float>() + first, count, alpha);
  });
}

}  // namespace lockstep::kernels::LS_CPU
