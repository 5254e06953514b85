#include "bench/kernels/op_bench.h"
#include "kernels/elementwise/add.h"

namespace lockstep::bench {
namespace {

const Cases kCases{.cpu = {kF32, {{4096}, {401408}, {25690112}}},
                   .cuda = {kFloatTypes, kResnetShapes}};

const Bench kAdd("add", kCases, [](Timer& t) {
  const Tensor src = t.random(t.shape(), t.dtype());
  Tensor dst = t.random(t.shape(), t.dtype());
  t.run(3 * src.nbytes(), [&] { kernels::add(t.stream(), src, dst); });
});

}  // namespace
}  // namespace lockstep::bench
