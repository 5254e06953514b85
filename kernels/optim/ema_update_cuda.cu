// One thread eight elements, one block a chunk of one tensor; a launch takes as many tensors as a
// table holds. Traffic an element: 12 bytes. Bound: DRAM.
#include "kernels/optim/optimizer.cuh"
#include "kernels/optim/ema_update_rule.h"

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

}  // namespace lockstep::kernels::cuda
