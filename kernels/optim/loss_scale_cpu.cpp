#include "kernels/optim/loss_scale_rule.h"
#include "kernels/support/cpu/cpu_loops.h"

namespace lockstep::kernels::LS_CPU {

void loss_scale_init(Stream&, const LossScaleState& initial, Tensor& state) {
  *state_in(state) = initial;
}

void loss_scale_seed(Stream&, const Tensor& state, Tensor& seeds) {
  std::ranges::fill(seeds.span<float>(), state_in(state)->scale);
}

void check_finite(Stream& stream, std::span<const Tensor> buckets, Tensor& state) {
  int32_t* found_inf = &state_in(state)->found_inf;
  for (const Tensor& bucket : buckets) {
    dispatch_float(bucket.dtype(), [&]<class T>() {
      const T* values = bucket.data<T>();
      for_ranges(stream, bucket.numel(), [=](int64_t begin, int64_t end) {
        decltype(nonfinite_flag(T())) found = 0;
        for (int64_t i = begin; i < end; ++i) found |= nonfinite_flag(values[i]);
        if (found != 0) __atomic_store_n(found_inf, 1, __ATOMIC_RELAXED);
      });
    });
  }
}

void loss_scale_update(Stream&, const LossScaleRule& rule, Tensor& state) {
  end_step(*state_in(state), rule);
}

}  // namespace lockstep::kernels::LS_CPU
