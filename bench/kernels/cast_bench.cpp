#include "bench/kernels/op_bench.h"
#include "kernels/elementwise/copy.h"

namespace lockstep::bench {
namespace {

// From f32 to the case's type and back.
const std::vector<Dtype> kStored = {Dtype::kF16, Dtype::kBF16};
const Cases kCases{.cpu = {kStored, {{401408}}},
                   .cuda = {kStored, {{25557032}, {256, 64, 112, 112}}}};

void cast(Timer& t, Dtype from, Dtype to) {
  const Tensor src = t.random(t.shape(), from);
  Tensor dst = t.empty(t.shape(), to);
  t.run(src.nbytes() + dst.nbytes(), [&] { kernels::cast(t.stream(), src, dst); });
}

const Bench kNarrow("cast_from_f32", kCases, [](Timer& t) { cast(t, Dtype::kF32, t.dtype()); });
const Bench kWiden("cast_to_f32", kCases, [](Timer& t) { cast(t, t.dtype(), Dtype::kF32); });

}  // namespace
}  // namespace lockstep::bench
