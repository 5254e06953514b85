// One thread per eight elements, one block per chunk of one tensor; a launch takes as many tensors
// as a table holds. Traffic per parameter: 8 bytes for its value, 8 for its momentum, and the size
// of its gradient and of its copy: 20 bytes if both have 16 bits, 20 with f32 gradients and no
// copy. Bound: DRAM.
#include "kernels/optim/optimizer.cuh"
#include "kernels/optim/sgd_rule.h"
#include "kernels/optim/step_control_rule.h"

namespace lockstep::kernels::cuda {
namespace {

struct Sgd {
  struct Entry {
    float* param;
    float* momentum;  // null without momentum
    const void* grad;
    Dtype grad_dtype;
    WeightCopy copy;
    const float* factor;  // null: 1
  };
  struct Now {
    SgdRule rule;
    float grad_factor;
    bool skip;
  };

  SgdRule rule;
  StepSource source;

  __device__ Now now() const {
    const StepNow step = step_now(source, 1);
    Now now = {rule, step.grad_factor, step.skip};
    now.rule.lr = static_cast<float>(step.lr);
    return now;
  }

  template <int n>
  __device__ __forceinline__ void run(const Entry& entry, int64_t first, const Now& now) const {
    const Pack<float, n> grad =
        load_scaled<n>(entry.grad, entry.grad_dtype, first, now.grad_factor);
    Pack<float, n> param = load_pack<n>(entry.param + first);
    SgdRule of_tensor = now.rule;
    if (entry.factor != nullptr) of_tensor.factor = *entry.factor;
    if (entry.momentum == nullptr) {
#pragma unroll
      for (int i = 0; i < n; ++i)
        param[i] = next_param(of_tensor, param[i], decayed(of_tensor, grad[i], param[i]));
    } else {
      Pack<float, n> buffer = load_pack<n>(entry.momentum + first);
#pragma unroll
      for (int i = 0; i < n; ++i) {
        const float g = decayed(of_tensor, grad[i], param[i]);
        buffer[i] = next_momentum(of_tensor, g, buffer[i]);
        param[i] = next_param(of_tensor, param[i], g, buffer[i]);
      }
      store_pack(entry.momentum + first, buffer);
    }
    store_pack(entry.param + first, param);
    entry.copy.store(param, first);
  }
};

}  // namespace

void sgd_step(Stream& stream, std::span<SgdSlot> slots, const SgdParams& params) {
  const auto row_of = [&](SgdSlot& slot) {
    const Sgd::Entry entry = {
        .param = slot.param.data<float>(),
        .momentum = params.momentum != 0 ? slot.momentum.data<float>() : nullptr,
        .grad = slot.grad.bytes(),
        .grad_dtype = slot.grad.dtype(),
        .copy = copy_in(slot.copy),
        .factor = slot.factor.defined() ? slot.factor.data<float>() : nullptr};
    return TableRow<Sgd::Entry>{
        .entry = entry,
        .size = slot.param.numel(),
        .packed = aligned({entry.param, entry.momentum, entry.grad, entry.copy.values})};
  };
  const Sgd body = {.rule = rule_of(params), .source = source_of(params.control, params.lr)};
  launch_optimizer(stream, "sgd_step", slots, row_of, body);
}

}  // namespace lockstep::kernels::cuda
