#include "bench/kernels/op_bench.h"
#include "kernels/optim/adam.h"
#include "kernels/optim/gradient_factors.h"
#include "kernels/optim/loss_scale.h"
#include "kernels/optim/sgd.h"
#include "kernels/optim/weight_averages.h"

namespace lockstep::bench {
namespace {

// Tensors, and elements of each. ResNet-50's parameters have a quarter in each of four.
const Cases kSteps{.cpu = {kF32, {{10, 2903}, {62, 188575}}},
                   .cuda = {kFloatTypes, {{4, 6389000}}}};
const Cases kAverages{.cpu = kSteps.cpu, .cuda = {kF32, {{1, 25557032}}}};

// One for each of t[0] tensors.
template <class MakeSlot>
auto make_slots(const Timer& t, const MakeSlot& make_slot) {
  std::vector<decltype(make_slot())> slots;
  for (int64_t i = 0; i < t[0]; ++i) slots.push_back(make_slot());
  return slots;
}

size_t all_elements(const Timer& t) {
  return static_cast<size_t>(t[0] * t[1]);
}

// The copy that a step writes where gradients have 16 bits.
Tensor copy_of_param(const Timer& t) {
  return t.dtype() == Dtype::kF32 ? Tensor() : t.empty({t[1]}, t.dtype());
}

void sgd_step(Timer& t, const kernels::SgdParams& params) {
  const bool has_momentum = params.momentum != 0;
  std::vector<kernels::SgdSlot> slots = make_slots(t, [&] {
    return kernels::SgdSlot{.param = t.random_f32({t[1]}),
                            .grad = t.random({t[1]}, t.dtype()),
                            .momentum = has_momentum ? t.random_f32({t[1]}) : Tensor(),
                            .copy = copy_of_param(t)};
  });
  t.run((has_momentum ? 20 : 12) * all_elements(t),
        [&] { kernels::sgd_step(t.stream(), slots, params); });
}

const Bench kSgd("sgd_step", kSteps, [](Timer& t) {
  sgd_step(t, {.lr = 1e-6F, .momentum = 0.9F, .weight_decay = 1e-4F});
});
const Bench kSgdPlain("sgd_step_plain", kSteps, [](Timer& t) {
  sgd_step(t, {.lr = 1e-6F, .weight_decay = 1e-4F});
});

const Bench kAdam("adam_step", kSteps, [](Timer& t) {
  std::vector<kernels::AdamSlot> slots = make_slots(t, [&] {
    return kernels::AdamSlot{.param = t.random_f32({t[1]}),
                             .grad = t.random({t[1]}, t.dtype()),
                             .exp_avg = t.random_f32({t[1]}),
                             .exp_avg_sq = t.random({t[1]}, Dtype::kF32, 0),
                             .copy = copy_of_param(t)};
  });
  const kernels::AdamParams params{.lr = 1e-6, .weight_decay = 1e-2, .decoupled = true};
  t.run(28 * all_elements(t), [&] { kernels::adam_step(t.stream(), slots, params, 100); });
});

// Parameters of a ResNet-50.
const Cases kLarcCases{.cpu = {kF32, {{161}}}, .cuda = {kF32, {{161}}}};

const Bench kLarcFactors("larc_factors", kLarcCases, [](Timer& t) {
  const Tensor norms = t.random_f32({2 * t[0] + 1});
  const Tensor decays = t.random_f32({t[0]});
  Tensor factors = t.empty({t[0]}, Dtype::kF32);
  t.run(4 * factors.nbytes(),
        [&] { kernels::larc_factors(t.stream(), norms, decays, {}, factors); });
});

const Bench kLookahead("lookahead_sync", kAverages, [](Timer& t) {
  std::vector<kernels::LookaheadSlot> slots = make_slots(t, [&] {
    return kernels::LookaheadSlot{.param = t.random_f32({t[1]}), .slow = t.random_f32({t[1]})};
  });
  t.run(16 * all_elements(t), [&] { kernels::lookahead_sync(t.stream(), slots, {}); });
});

const Bench kEma("ema_update", kAverages, [](Timer& t) {
  std::vector<kernels::EmaSlot> slots = make_slots(t, [&] {
    return kernels::EmaSlot{.param = t.random_f32({t[1]}), .ema = t.random_f32({t[1]})};
  });
  t.run(12 * all_elements(t), [&] { kernels::ema_update(t.stream(), slots, {}); });
});

const Cases kClipCases{.cpu = {kF32, {{2}}}, .cuda = {kF32, {{2}}}};

const Bench kClipFactor("clip_factor", kClipCases, [](Timer& t) {
  const Tensor norms = t.random_f32(t.shape());
  Tensor factor = t.empty({1}, Dtype::kF32);
  t.run(2 * sizeof(float), [&] { kernels::clip_factor(t.stream(), norms, 1, {}, factor); });
});

// Buckets, and elements of each.
const Cases kBuckets{.cpu = {kFloatTypes, {{4, 6553600}}}, .cuda = {kFloatTypes, {{1, 25557032}}}};
const Cases kScalars{.cpu = {kF32, {{1}}}, .cuda = {kF32, {{1}}}};

Tensor initial_state(Timer& t) {
  Tensor state = t.empty({kernels::kLossScaleStateBytes}, Dtype::kU8);
  kernels::loss_scale_init(t.stream(), {}, state);
  return state;
}

const Bench kCheckFinite("check_finite", kBuckets, [](Timer& t) {
  const std::vector<Tensor> buckets = t.random_tensors();
  Tensor state = initial_state(t);
  t.run(buckets.size() * buckets[0].nbytes(),
        [&] { kernels::check_finite(t.stream(), buckets, state); });
});

const Bench kLossScaleSeed("loss_scale_seed", kScalars, [](Timer& t) {
  const Tensor state = initial_state(t);
  Tensor seeds = t.empty(t.shape(), Dtype::kF32);
  t.run(2 * seeds.nbytes(), [&] { kernels::loss_scale_seed(t.stream(), state, seeds); });
});

const Bench kLossScaleUpdate("loss_scale_update", kScalars, [](Timer& t) {
  Tensor state = initial_state(t);
  t.run(2 * state.nbytes(), [&] { kernels::loss_scale_update(t.stream(), {}, state); });
});

}  // namespace
}  // namespace lockstep::bench
