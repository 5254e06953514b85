#include "kernels/multi_tensor.h"
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
  for_slots(stream, slots, [&](SgdSlot& slot, int64_t first, int64_t count) {
    const float* grad = slot.grad.data<float>() + first;
    float* param = slot.param.data<float>() + first;
    if (params.momentum == 0) {
      update(grad, param, count, params);
    } else {
      update_with_momentum(grad, param, slot.momentum.data<float>() + first, count, params);
    }
  });
}

}  // namespace lockstep::kernels::LS_CPU
