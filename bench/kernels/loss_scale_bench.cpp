#include "bench/kernels/op_bench.h"
#include "kernels/optim/loss_scale.h"

namespace lockstep::bench {
namespace {

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

const Bench kSeed("loss_scale_seed", kScalars, [](Timer& t) {
  const Tensor state = initial_state(t);
  Tensor seeds = t.empty(t.shape(), Dtype::kF32);
  t.run(2 * seeds.nbytes(), [&] { kernels::loss_scale_seed(t.stream(), state, seeds); });
});

const Bench kUpdate("loss_scale_update", kScalars, [](Timer& t) {
  Tensor state = initial_state(t);
  t.run(2 * state.nbytes(), [&] { kernels::loss_scale_update(t.stream(), {}, state); });
});

}  // namespace
}  // namespace lockstep::bench
