#include "bench/kernels/op_bench.h"
#include "kernels/optim/gradient_factors.h"

namespace lockstep::bench {
namespace {

// Parameters of a ResNet-50.
const Cases kCases{.cpu = {kF32, {{161}}}, .cuda = {kF32, {{161}}}};

const Bench kFactors("larc_factors", kCases, [](Timer& t) {
  const Tensor norms = t.random_f32({2 * t[0] + 1});
  const Tensor decays = t.random_f32({t[0]});
  Tensor factors = t.empty({t[0]}, Dtype::kF32);
  t.run(4 * factors.nbytes(),
        [&] { kernels::larc_factors(t.stream(), norms, decays, {}, factors); });
});

}  // namespace
}  // namespace lockstep::bench
