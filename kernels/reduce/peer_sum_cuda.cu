// One thread sums a pack of 16 bytes of every leaf, by tree.cuh, and stores it to every sum.
// Traffic per element: a value of each leaf and of each sum. Bound: DRAM, or the links to other
// devices.
#include <fmt/core.h>

#include "kernels/support/cuda/elementwise.cuh"
#include "kernels/reduce/tree.cuh"
#include "kernels/reduce/peer_sum.h"

namespace lockstep::kernels::cuda {
namespace {

template <class T>
struct PeerSumBody {
  static constexpr int kCount = 16 / sizeof(T);
  const T* leaves[kMaxPeers];
  T* sums[kMaxPeers];
  int leaf_count, sum_count;

  template <int n>
  __device__ void run(int64_t first) const {
    const auto load = [&](int leaf) { return load_pack<n>(leaves[leaf] + first); };
    const Pack<T, n> sum = sum_leaves<T, n>(leaf_count, load);
    for (int k = 0; k < sum_count; ++k) store_pack_whole(sums[k] + first, sum);
  }
};

void check_count(const char* what, size_t count) {
  if (count > kMaxPeers) {
    throw ShapeError(
        fmt::format("[peer_sum] {}: got {}, expected {} at most", what, count, kMaxPeers));
  }
}

}  // namespace

void peer_sum(Stream& stream, std::span<const Tensor> leaves, std::span<Tensor> sums) {
  check_count("leaves", leaves.size());
  check_count("sums", sums.size());
  if (sums.empty()) return;
  with_float_type(leaves.front().dtype(), [&]<class T>() {
    PeerSumBody<T> body{};
    bool packs = true;
    for (const Tensor& leaf : leaves) {
      body.leaves[body.leaf_count++] = elements<T>(leaf);
      packs = packs && aligned({leaf.bytes()});
    }
    for (Tensor& sum : sums) {
      body.sums[body.sum_count++] = elements<T>(sum);
      packs = packs && aligned({sum.bytes()});
    }
    launch_elementwise(stream, "peer_sum", leaves.front().numel(), body, {}, packs);
  });
}

}  // namespace lockstep::kernels::cuda
