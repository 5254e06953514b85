#include "comm/replicas.h"

#include <vector>

namespace lockstep::comm {

void broadcast_tensors(Communicator& peers, std::span<Tensor> tensors, int root) {
  for (Tensor& tensor : tensors) peers.broadcast({tensor.bytes(), tensor.nbytes()}, root);
}

int first_differing_rank(Communicator& peers, uint64_t digest) {
  std::vector<uint64_t> digests(static_cast<size_t>(peers.size()));
  peers.all_gather(std::as_bytes(std::span(&digest, 1)),
                   std::as_writable_bytes(std::span(digests)));
  for (int rank = 1; rank < peers.size(); ++rank) {
    if (digests[static_cast<size_t>(rank)] != digests[0]) return rank;
  }
  return -1;
}

}  // namespace lockstep::comm
