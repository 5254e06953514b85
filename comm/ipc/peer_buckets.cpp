#include "comm/ipc/peer_buckets.h"

#include "comm/gather.h"
#include "core/error.h"

namespace lockstep::comm::ipc {
namespace {

// How others find a bucket of this rank.
struct Address {
  cuda::MemoryHandle values;
  cuda::Handle ready{}, done{};
};

// This rank's part of a bucket, and the others' yet to come.
PeerBucket own_part(const Bucket& bucket, int rank, int ranks, Address& address) {
  const cuda::InterprocessEvent ready, done;
  address = {.values = cuda::export_memory(bucket.values.bytes()),
             .ready = ready.handle(),
             .done = done.handle()};
  const auto count = static_cast<size_t>(ranks), me = static_cast<size_t>(rank);
  PeerBucket own{.label = bucket.label,
                 .values = std::vector<Tensor>(count),
                 .ready = std::vector<cuda::InterprocessEvent>(count, ready),
                 .done = std::vector<cuda::InterprocessEvent>(count, done)};
  own.values[me] = bucket.values;
  return own;
}

void add_part(PeerBucket& bucket, size_t peer, const Tensor& like, const Address& address) {
  bucket.values[peer] =
      Tensor::wrap(cuda::import_memory(address.values), like.shape(), like.dtype(), Device::kCuda);
  bucket.ready[peer] = cuda::InterprocessEvent(address.ready);
  bucket.done[peer] = cuda::InterprocessEvent(address.done);
}

void on_all(Communicator& peers, FunctionRef<void()> step) {
  const std::string problem = attempt(peers, step);
  if (problem.empty()) return;
  throw EnvironmentError("the ranks do not reach each other's GPU memory",
                         problem,
                         "ranks of one user in one container (docker --ipc=host --pid=host)",
                         Remedy::kHostExchange);
}

}  // namespace

std::vector<PeerBucket> share_buckets(Communicator& peers, std::span<const Bucket> buckets) {
  std::vector<PeerBucket> shared;
  std::vector<Address> mine(buckets.size());
  on_all(peers, [&] {
    for (size_t b = 0; b < buckets.size(); ++b) {
      shared.push_back(own_part(buckets[b], peers.rank(), peers.size(), mine[b]));
    }
  });
  const std::vector<Address> all = gather_values(peers, std::span<const Address>(mine));
  on_all(peers, [&] {
    for (size_t i = 0; i < all.size(); ++i) {
      const size_t peer = i / buckets.size(), b = i % buckets.size();
      if (peer == static_cast<size_t>(peers.rank())) continue;
      add_part(shared[b], peer, buckets[b].values, all[i]);
    }
  });
  return shared;
}

}  // namespace lockstep::comm::ipc
