#include "bench/kernels/op_bench.h"
#include "kernels/elementwise/scale.h"

namespace lockstep::bench {
namespace {

const Cases kCases{.cpu = {kF32, {{401408}, {25557032}}}, .cuda = {kF32, {{25557032}}}};

const Bench kScale("scale", kCases, [](Timer& t) {
  Tensor values = t.random_f32(t.shape());
  t.run(2 * values.nbytes(), [&] { kernels::scale(t.stream(), -1, values); });
});

}  // namespace
}  // namespace lockstep::bench
