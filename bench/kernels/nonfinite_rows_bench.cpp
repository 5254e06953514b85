#include "bench/kernels/op_bench.h"
#include "kernels/reduce/nonfinite_rows.h"

namespace lockstep::bench {
namespace {

const Cases kCases{.cpu = {kFloatTypes, {{32, 12544}, {32, 802816}}},
                   .cuda = {kFloatTypes, kResnetShapes}};

const Bench kRows("nonfinite_rows", kCases, [](Timer& t) {
  const Tensor in = t.random(t.shape(), t.dtype());
  Tensor counts = t.empty({t[0]}, Dtype::kI32);
  t.run(in.nbytes(), [&] { kernels::nonfinite_rows(t.stream(), in, counts); });
});

}  // namespace
}  // namespace lockstep::bench
