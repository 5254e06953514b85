#include "bench/kernels/op_bench.h"
#include "kernels/optim/sgd.h"

namespace lockstep::bench {
namespace {

// Tensors, and elements of each; ResNet-50's parameters have a quarter in each of four.
const Cases kCases{.cpu = {kF32, {{10, 2903}, {62, 188575}}},
                   .cuda = {kFloatTypes, {{4, 6389000}}}};

// Gradients are of the case's type, and there are copies of it if it has 16 bits.
void step(Timer& t, const kernels::SgdParams& params) {
  std::vector<kernels::SgdSlot> slots;
  const Shape numel = {t[1]};
  const bool copies = t.dtype() != Dtype::kF32;
  for (int64_t i = 0; i < t[0]; ++i) {
    slots.push_back({.param = t.random_f32(numel),
                     .grad = t.random(numel, t.dtype()),
                     .momentum = params.momentum == 0 ? Tensor() : t.random_f32(numel),
                     .copy = copies ? t.empty(numel, t.dtype()) : Tensor()});
  }
  const size_t value_bytes = params.momentum == 0 ? 12 : 20;
  t.run(value_bytes * static_cast<size_t>(t[0] * t[1]),
        [&] { kernels::sgd_step(t.stream(), slots, params); });
}

const Bench kStep("sgd_step", kCases, [](Timer& t) {
  step(t, {.lr = 1e-6F, .momentum = 0.9F, .weight_decay = 1e-4F});
});
const Bench kPlain("sgd_step_plain", kCases, [](Timer& t) {
  step(t, {.lr = 1e-6F, .weight_decay = 1e-4F});
});

}  // namespace
}  // namespace lockstep::bench
