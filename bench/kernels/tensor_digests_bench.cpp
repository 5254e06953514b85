#include "bench/kernels/op_bench.h"
#include "kernels/reduce/tensor_digests.h"

namespace lockstep::bench {
namespace {

// Tensors, and elements of each.
const Cases kCases{.cpu = {kF32, {{10, 2903}, {62, 188575}}}, .cuda = {kF32, {{1, 25557032}}}};

const Bench kDigests("tensor_digests", kCases, [](Timer& t) {
  const std::vector<Tensor> tensors = t.random_tensors();
  Tensor digests = t.empty({t[0]}, Dtype::kI64);
  t.run(tensors.size() * tensors[0].nbytes(),
        [&] { kernels::tensor_digests(t.stream(), tensors, digests); });
});

}  // namespace
}  // namespace lockstep::bench
