#include "bench/kernels/op_bench.h"
#include "kernels/elementwise/copy.h"

namespace lockstep::bench {
namespace {

const Cases kCases{.cpu = {kF32, {{29034}, {25557032}}}, .cuda = {kF32, {{29034}, {25557032}}}};

const Bench kCopy("copy", kCases, [](Timer& t) {
  const Tensor src = t.random_f32(t.shape());
  Tensor dst = t.empty(t.shape(), Dtype::kF32);
  t.run(2 * src.nbytes(), [&] { kernels::copy(t.stream(), src, dst); });
});

}  // namespace
}  // namespace lockstep::bench
