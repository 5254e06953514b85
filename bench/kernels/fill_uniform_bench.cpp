#include "bench/kernels/op_bench.h"
#include "kernels/random/fill_uniform.h"

namespace lockstep::bench {
namespace {

const Cases kCases{.cpu = {kF32, {{29034}, {25557032}}}, .cuda = {kFloatTypes, {{25557032}}}};

const Bench kFill("fill_uniform", kCases, [](Timer& t) {
  Tensor out = t.empty(t.shape(), t.dtype());
  t.run(out.nbytes(), [&] { kernels::fill_uniform(t.stream(), {.seed = 1}, out); });
});

}  // namespace
}  // namespace lockstep::bench
