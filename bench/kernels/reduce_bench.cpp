#include "bench/kernels/op_bench.h"
#include "kernels/reduce/nonfinite_rows.h"
#include "kernels/reduce/peer_sum.h"
#include "kernels/reduce/tensor_digests.h"
#include "kernels/reduce/tensor_norms.h"
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
const Cases kTreeSumCases{.cpu = {kF32, every_size()},
                          .cuda = {kF32, {{8, 25'557'032}, {8, 2'097'152}}}};

const Bench kTreeSum("tree_sum", kTreeSumCases, [](Timer& t) {
  const Tensor leaves = t.random_f32(t.shape());
  Tensor out = t.empty({t[1]}, Dtype::kF32);
  t.run(leaves.nbytes() + out.nbytes(), [&] { kernels::tree_sum(t.stream(), leaves, out); });
});

// Ranks and bytes of each copy. On CUDA a slice of eight, with all copies on one device: the links'
// part is not in it.
const Cases kPeerSumCases{.cpu = {kFloatTypes,
                                  {{2, 4096},
                                   {2, 1 << 20},
                                   {2, 25 << 20},
                                   {4, 4096},
                                   {4, 1 << 20},
                                   {4, 25 << 20},
                                   {8, 4096},
                                   {8, 1 << 20},
                                   {8, 25 << 20}}},
                          .cuda = {kFloatTypes, {{8, 12'778'516}}}};

// In place over all ranks' copies. Bytes: each copy read and written once.
const Bench kPeerSum("peer_sum", kPeerSumCases, [](Timer& t) {
  Stream one_thread;  // a rank's, on the CPU
  Stream& stream = t.stream().device() == Device::kCpu ? one_thread : t.stream();
  std::vector<Tensor> leaves;
  const Shape copy = {t[1] / static_cast<int64_t>(size_of(t.dtype()))};
  for (int64_t rank = 0; rank < t[0]; ++rank) leaves.push_back(t.random(copy, t.dtype()));
  t.run(2 * static_cast<size_t>(t[0] * t[1]), [&] { kernels::peer_sum(stream, leaves, leaves); });
});

// Tensors, and elements of each.
const Cases kNormsCases{.cpu = {{Dtype::kF32, Dtype::kF16}, {{10, 2903}, {62, 188575}}},
                        .cuda = {kFloatTypes, {{1, 25557032}}}};

const Bench kNorms("tensor_norms", kNormsCases, [](Timer& t) {
  const std::vector<Tensor> tensors = t.random_tensors();
  Tensor norms = t.empty({t[0] + 1}, Dtype::kF32);
  t.run(tensors.size() * tensors[0].nbytes(),
        [&] { kernels::tensor_norms(t.stream(), tensors, norms); });
});

// Tensors, and elements of each.
const Cases kDigestsCases{.cpu = {kF32, {{10, 2903}, {62, 188575}}},
                          .cuda = {kF32, {{1, 25557032}}}};

const Bench kDigests("tensor_digests", kDigestsCases, [](Timer& t) {
  const std::vector<Tensor> tensors = t.random_tensors();
  Tensor digests = t.empty({t[0]}, Dtype::kI64);
  t.run(tensors.size() * tensors[0].nbytes(),
        [&] { kernels::tensor_digests(t.stream(), tensors, digests); });
});

const Cases kNonfiniteCases{.cpu = {kFloatTypes, {{32, 12544}, {32, 802816}}},
                            .cuda = {kFloatTypes, kResnetShapes}};

const Bench kNonfiniteRows("nonfinite_rows", kNonfiniteCases, [](Timer& t) {
  const Tensor in = t.random(t.shape(), t.dtype());
  Tensor counts = t.empty({t[0]}, Dtype::kI32);
  t.run(in.nbytes(), [&] { kernels::nonfinite_rows(t.stream(), in, counts); });
});

}  // namespace
}  // namespace lockstep::bench
