// One thread per eight elements, one block per chunk of one tensor; a launch takes as many tensors
// as a table holds. Traffic: ema_update 12 bytes per element; lookahead_sync 16 bytes per parameter
// and 2 for its copy when it synchronizes, 8 when slow weights begin, otherwise none. Bound: DRAM.
#include "kernels/optim/optimizer.cuh"
#include "kernels/optim/weight_averages_rule.h"

namespace lockstep::kernels::cuda {
namespace {

struct Ema {
  struct Entry {
    const float* value;
    float* ema;
  };
  using Now = EmaNow;

  double decay;
  int64_t step;
  const LossScaleState* state;

  __device__ Now now() const { return ema_now(decay, step, state); }

  template <int n>
  __device__ __forceinline__ void run(const Entry& entry, int64_t first, const Now& now) const {
    const Pack<float, n> value = load_pack<n>(entry.value + first);
    Pack<float, n> ema = load_pack<n>(entry.ema + first);
#pragma unroll
    for (int i = 0; i < n; ++i) ema[i] = averaged(now, value[i], ema[i]);
    store_pack(entry.ema + first, ema);
  }
};

struct Lookahead {
  struct Entry {
    float* param;
    float* slow;
    WeightCopy copy;
  };
  struct Now {
    float alpha;
    bool begin;
    bool skip;
  };

  LookaheadRule rule;
  const LossScaleState* state;

  __device__ Now now() const {
    const LookaheadNow at = lookahead_now(rule, state);
    return {at.alpha, at.action == LookaheadAction::kBegin, at.action == LookaheadAction::kNothing};
  }

  template <int n>
  __device__ __forceinline__ void run(const Entry& entry, int64_t first, const Now& now) const {
    Pack<float, n> param = load_pack<n>(entry.param + first);
    if (!now.begin) {
      const Pack<float, n> slow = load_pack<n>(entry.slow + first);
#pragma unroll
      for (int i = 0; i < n; ++i) param[i] = interpolated(param[i], slow[i], now.alpha);
      store_pack(entry.param + first, param);
      entry.copy.store(param, first);
    }
    store_pack(entry.slow + first, param);
  }
};

}  // namespace

void ema_update(Stream& stream, std::span<EmaSlot> slots, const EmaParams& params) {
  const auto row_of = [](EmaSlot& slot) {
    const Ema::Entry entry = {.value = slot.param.data<float>(), .ema = slot.ema.data<float>()};
    return TableRow<Ema::Entry>{
        .entry = entry, .size = slot.param.numel(), .packed = aligned({entry.value, entry.ema})};
  };
  const Ema body = {.decay = params.decay, .step = params.step, .state = state_in(params.state)};
  launch_optimizer(stream, "ema_update", slots, row_of, body);
}

void lookahead_sync(Stream& stream, std::span<LookaheadSlot> slots, const LookaheadParams& params) {
  const auto row_of = [](LookaheadSlot& slot) {
    const Lookahead::Entry entry = {.param = slot.param.data<float>(),
                                    .slow = slot.slow.data<float>(),
                                    .copy = copy_in(slot.copy)};
    return TableRow<Lookahead::Entry>{
        .entry = entry,
        .size = slot.param.numel(),
        .packed = aligned({entry.param, entry.slow, entry.copy.values})};
  };
  const Lookahead body = {.rule = rule_of(params), .state = state_in(params.state)};
  launch_optimizer(stream, "lookahead_sync", slots, row_of, body);
}

}  // namespace lockstep::kernels::cuda
