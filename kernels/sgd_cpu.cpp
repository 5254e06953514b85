#include "kernels/cpu_loops.h"
#include "kernels/sgd.h"

namespace lockstep::kernels::LS_CPU {
namespace {

void update(const float* __restrict grad,
            float* __restrict param,
            int64_t n,
            const SgdParams& params) {
  const float lr = params.lr;
  const float weight_decay = params.weight_decay;
  const bool decays = weight_decay != 0;
  for (int64_t i = 0; i < n; ++i) {
    const float g = decays ? grad[i] + weight_decay * param[i] : grad[i];
    param[i] -= lr * g;
  }
}

void update_with_momentum(const float* __restrict grad,
                          float* __restrict param,
                          float* __restrict buffer,
                          int64_t n,
                          const SgdParams& params) {
  const float lr = params.lr;
  const float momentum = params.momentum;
  const float weight_decay = params.weight_decay;
  const bool decays = weight_decay != 0;
  const bool nesterov = params.nesterov;
  for (int64_t i = 0; i < n; ++i) {
    const float g = decays ? grad[i] + weight_decay * param[i] : grad[i];
    const float buf = momentum * buffer[i] + g;
    buffer[i] = buf;
    param[i] -= lr * (nesterov ? g + momentum * buf : buf);
  }
}

}  // namespace

void sgd_step(Stream& stream, std::span<SgdSlot> slots, const SgdParams& params) {
  int64_t numel = 0;
  for (const SgdSlot& slot : slots) numel += slot.param.numel();
  // The slots laid end to end make one range; each worker takes its part of it.
  for_ranges(stream, numel, [&](int64_t begin, int64_t end) {
    int64_t start = 0;
    for (SgdSlot& slot : slots) {
      const int64_t size = slot.param.numel();
      const int64_t first = begin > start ? begin - start : 0;
      const int64_t last = end < start + size ? end - start : size;
      start += size;
      if (first >= last) continue;
      const float* grad = slot.grad.data<float>() + first;
      float* param = slot.param.data<float>() + first;
      if (params.momentum == 0) {
        update(grad, param, last - first, params);
      } else {
        float* buffer = slot.momentum.data<float>() + first;
        update_with_momentum(grad, param, buffer, last - first, params);
      }
    }
  });
}

}  // namespace lockstep::kernels::LS_CPU
