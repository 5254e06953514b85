#include "bench/kernels/op_bench.h"
#include "kernels/optim/adam.h"

namespace lockstep::bench {
namespace {

// Tensors, and elements of each; ResNet-50's parameters have a quarter in each of four.
const Cases kCases{.cpu = {kF32, {{10, 2903}, {62, 188575}}},
                   .cuda = {kFloatTypes, {{4, 6389000}}}};

// Gradients are of the case's type, and there are copies of it if it has 16 bits.
const Bench kStep("adam_step", kCases, [](Timer& t) {
  std::vector<kernels::AdamSlot> slots;
  const Shape numel = {t[1]};
  const bool copies = t.dtype() != Dtype::kF32;
  for (int64_t i = 0; i < t[0]; ++i) {
    slots.push_back({.param = t.random_f32(numel),
                     .grad = t.random(numel, t.dtype()),
                     .exp_avg = t.random_f32(numel),
                     .exp_avg_sq = t.random(numel, Dtype::kF32, 0),
                     .copy = copies ? t.empty(numel, t.dtype()) : Tensor()});
  }
  const kernels::AdamParams params{.lr = 1e-6, .weight_decay = 1e-2, .decoupled = true};
  t.run(28 * static_cast<size_t>(t[0] * t[1]),
        [&] { kernels::adam_step(t.stream(), slots, params, 100); });
});

}  // namespace
}  // namespace lockstep::bench
