#include "bench/kernels/op_bench.h"
#include "kernels/reduce/tensor_norms.h"

namespace lockstep::bench {
namespace {

// Tensors, and elements of each.
const Cases kCases{.cpu = {{Dtype::kF32, Dtype::kF16}, {{10, 2903}, {62, 188575}}},
                   .cuda = {kFloatTypes, {{1, 25557032}}}};

const Bench kNorms("tensor_norms", kCases, [](Timer& t) {
  const std::vector<Tensor> tensors = t.random_tensors();
  Tensor norms = t.empty({t[0] + 1}, Dtype::kF32);
  t.run(tensors.size() * tensors[0].nbytes(),
        [&] { kernels::tensor_norms(t.stream(), tensors, norms); });
});

}  // namespace
}  // namespace lockstep::bench
