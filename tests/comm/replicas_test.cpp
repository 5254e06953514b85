#include "comm/replicas.h"

#include <gtest/gtest.h>

#include "comm/thread_communicator.h"
#include "tests/support/close.h"
#include "tests/support/random_tensor.h"

namespace lockstep::comm {
namespace {

using testing::random_tensor;
using testing::same_bits;

TEST(Replicas, BroadcastOverwritesEveryTensor) {
  for (const int root : {0, 2}) {
    spawn_ranks(3, [&](Communicator& peers) {
      const auto seed = static_cast<uint64_t>(peers.rank());
      std::vector<Tensor> tensors = {random_tensor({4, 3, 2, 2}, seed),
                                     random_tensor({0}, seed),
                                     random_tensor({17}, seed + 10)};
      broadcast_tensors(peers, tensors, root);
      EXPECT_TRUE(same_bits(tensors[0], random_tensor({4, 3, 2, 2}, static_cast<uint64_t>(root))));
      EXPECT_TRUE(same_bits(tensors[2], random_tensor({17}, static_cast<uint64_t>(root) + 10)));
    });
  }
}

TEST(Replicas, NamesTheFirstRankThatDiffers) {
  spawn_ranks(4, [](Communicator& peers) {
    EXPECT_EQ(first_differing_rank(peers, 42), -1);
    EXPECT_EQ(first_differing_rank(peers, peers.rank() >= 2 ? 43 : 42), 2);
    EXPECT_EQ(first_differing_rank(peers, peers.rank() == 0 ? 43 : 42), 1);
  });
}

}  // namespace
}  // namespace lockstep::comm
