// One thread per eight elements, one block per chunk of one tensor; a launch takes as many tensors
// as a table holds. Traffic per parameter: 8 bytes for its value, 16 for its averages, and the size
// of its gradient and of its copy: 28 bytes if both have 16 bits, 28 with f32 gradients and no
// copy. Bound: DRAM.
#include "kernels/optim/adam_rule.h"
#include "kernels/optim/optimizer.cuh"
#include "kernels/optim/step_control_rule.h"

namespace lockstep::kernels::cuda {
namespace {

struct Adam {
  struct Entry {
    float* param;
    float* exp_avg;
    float* exp_avg_sq;
    const void* grad;
    Dtype grad_dtype;
    WeightCopy copy;
  };
  struct Now {
    AdamFactors factors;
    float grad_factor;
    bool skip;
  };

  AdamRule rule;
  int64_t step;
  StepSource source;

  __device__ Now now() const {
    const StepNow at = step_now(source, step);
    return {adam_factors(rule, at.lr, at.step), at.grad_factor, at.skip};
  }

  template <int n>
  __device__ __forceinline__ void run(const Entry& entry, int64_t first, const Now& now) const {
    const Pack<float, n> grad =
        load_scaled<n>(entry.grad, entry.grad_dtype, first, now.grad_factor);
    Pack<float, n> param = load_pack<n>(entry.param + first);
    Pack<float, n> exp_avg = load_pack<n>(entry.exp_avg + first);
    Pack<float, n> exp_avg_sq = load_pack<n>(entry.exp_avg_sq + first);
#pragma unroll
    for (int i = 0; i < n; ++i)
      adam_update(now.factors, grad[i], param[i], exp_avg[i], exp_avg_sq[i]);
    store_pack(entry.exp_avg + first, exp_avg);
    store_pack(entry.exp_avg_sq + first, exp_avg_sq);
    store_pack(entry.param + first, param);
    entry.copy.store(param, first);
  }
};

}  // namespace

void adam_step(Stream& stream, std::span<AdamSlot> slots, const AdamParams& params, int64_t step) {
  const auto row_of = [](AdamSlot& slot) {
    const Adam::Entry entry = {.param = slot.param.data<float>(),
                               .exp_avg = slot.exp_avg.data<float>(),
                               .exp_avg_sq = slot.exp_avg_sq.data<float>(),
                               .grad = slot.grad.bytes(),
                               .grad_dtype = slot.grad.dtype(),
                               .copy = copy_in(slot.copy)};
    return TableRow<Adam::Entry>{
        .entry = entry,
        .size = slot.param.numel(),
        .packed =
            aligned({entry.param, entry.exp_avg, entry.exp_avg_sq, entry.grad, entry.copy.values})};
  };
  const Adam body = {
      .rule = rule_of(params), .step = step, .source = source_of(params.control, params.lr)};
  launch_optimizer(stream, "adam_step", slots, row_of, body);
}

}  // namespace lockstep::kernels::cuda
