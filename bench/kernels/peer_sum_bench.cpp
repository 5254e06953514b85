#include "bench/kernels/op_bench.h"
#include "kernels/reduce/peer_sum.h"

namespace lockstep::bench {
namespace {

// Ranks and bytes of each copy. On CUDA a slice of eight, with all copies on one device: the links'
// part is not in it.
const Cases kCases{.cpu = {kFloatTypes,
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
const Bench kSum("peer_sum", kCases, [](Timer& t) {
  Stream one_thread;  // a rank's, on the CPU
  Stream& stream = t.stream().device() == Device::kCpu ? one_thread : t.stream();
  std::vector<Tensor> leaves;
  const Shape copy = {t[1] / static_cast<int64_t>(size_of(t.dtype()))};
  for (int64_t rank = 0; rank < t[0]; ++rank) leaves.push_back(t.random(copy, t.dtype()));
  t.run(2 * static_cast<size_t>(t[0] * t[1]), [&] { kernels::peer_sum(stream, leaves, leaves); });
});

}  // namespace
}  // namespace lockstep::bench
