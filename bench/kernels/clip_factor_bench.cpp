#include "bench/kernels/op_bench.h"
#include "kernels/optim/gradient_factors.h"

namespace lockstep::bench {
namespace {

const Cases kCases{.cpu = {kF32, {{2}}}, .cuda = {kF32, {{2}}}};

const Bench kFactor("clip_factor", kCases, [](Timer& t) {
  const Tensor norms = t.random_f32(t.shape());
  Tensor factor = t.empty({1}, Dtype::kF32);
  t.run(2 * sizeof(float), [&] { kernels::clip_factor(t.stream(), norms, 1, {}, factor); });
});

}  // namespace
}  // namespace lockstep::bench
