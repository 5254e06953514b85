#include "bench/kernels/op_bench.h"
#include "kernels/reduce/tree_sum.h"

namespace lockstep::bench {
namespace {

// Leaves, and elements of each. On CUDA eight shards' gradients of ResNet-50, and a bucket of them.
std::vector<Extents> every_size() {
  std::vector<Extents> all;
  for (const int64_t leaves : {1, 2, 8, 16, 40})
    for (const int64_t numel : {64, 28938, 1048576}) all.push_back({leaves, numel});
  return all;
}
const Cases kCases{.cpu = {kF32, every_size()}, .cuda = {kF32, {{8, 25'557'032}, {8, 2'097'152}}}};

const Bench kSum("tree_sum", kCases, [](Timer& t) {
  const Tensor leaves = t.random_f32(t.shape());
  Tensor out = t.empty({t[1]}, Dtype::kF32);
  t.run(leaves.nbytes() + out.nbytes(), [&] { kernels::tree_sum(t.stream(), leaves, out); });
});

}  // namespace
}  // namespace lockstep::bench
