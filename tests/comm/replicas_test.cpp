#include "comm/replicas.h"

#include <functional>

#include <gtest/gtest.h>

#include "comm/shared/thread_ranks.h"
#include "tests/support/close.h"
#include "tests/support/random_tensor.h"

namespace lockstep::comm::replicas_test {
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
      broadcast_tensors(peers, tensors, nullptr, root);
      EXPECT_TRUE(same_bits(tensors[0], random_tensor({4, 3, 2, 2}, static_cast<uint64_t>(root))));
      EXPECT_TRUE(same_bits(tensors[2], random_tensor({17}, static_cast<uint64_t>(root) + 10)));
    });
  }
}

Tensor state_tensor(Dtype dtype) {
  Tensor tensor = Tensor::zeros({2, 3, 4, 5}, dtype);
  if (dtype == Dtype::kF32) tensor = random_tensor({2, 3, 4, 5}, 1);
  return tensor;
}

// What each of `ranks` ranks gets from the audit after `damage` has changed some ranks' tensors.
std::vector<std::optional<ReplicaDifference>> audit(
    int ranks, const std::function<void(int rank, std::vector<NamedTensor>&)>& damage) {
  std::vector<std::optional<ReplicaDifference>> told(static_cast<size_t>(ranks));
  spawn_ranks(ranks, [&](Communicator& peers) {
    std::vector<NamedTensor> tensors = {{"first", state_tensor(Dtype::kF32)},
                                        {"half", state_tensor(Dtype::kF16)},
                                        {"none", Tensor::zeros({0}, Dtype::kF32)},
                                        {"steps", Tensor::zeros({1}, Dtype::kI64)},
                                        {"last", state_tensor(Dtype::kF32)}};
    damage(peers.rank(), tensors);
    told[static_cast<size_t>(peers.rank())] = audit_replicas(peers, tensors);
  });
  return told;
}

// All ranks must get the same difference.
std::string text_told(const std::vector<std::optional<ReplicaDifference>>& told) {
  for (const auto& difference : told) {
    if (!difference.has_value()) return "nothing";
    EXPECT_EQ(to_string(*difference), to_string(*told[0]));
    EXPECT_EQ(difference->ranks, told[0]->ranks);
  }
  return to_string(*told[0]);
}

TEST(ReplicaAudit, EqualReplicasAreSilent) {
  for (const int ranks : {1, 3}) {
    for (const auto& told : audit(ranks, [](int, auto&) {})) EXPECT_FALSE(told.has_value());
  }
}

TEST(ReplicaAudit, EqualReplicasCostEightBytesARank) {
  spawn_ranks(2, [](Communicator& peers) {
    const std::vector<NamedTensor> tensors = {{"large", random_tensor({100000}, 1)}};
    const int64_t before = peers.traffic().moved_bytes;
    EXPECT_FALSE(audit_replicas(peers, tensors).has_value());
    EXPECT_LE(peers.traffic().moved_bytes - before, 16);
  });
}

TEST(ReplicaAudit, NamesRankTensorElementAndValues) {
  EXPECT_EQ(text_told(audit(2,
                            [](int rank, auto& tensors) {
                              tensors[4].tensor.template data<float>()[0] = 0.152908F;
                              if (rank == 1) tensors[4].tensor.template data<float>()[0] *= -1;
                            })),
            "rank 1 differs in last at element 0: -0.152908, rank 0 has 0.152908");
}

TEST(ReplicaAudit, CountsElementsInFileOrder) {
  EXPECT_EQ(text_told(audit(2,
                            [](int rank, auto& tensors) {
                              // (0,1,2,3) of (2,3,4,5), stored channels last.
                              const int64_t stored = (2 * 5 + 3) * 3 + 1;
                              if (rank == 1) {
                                tensors[1].tensor.template data<Half>()[stored] = Half(0.5F);
                              }
                            })),
            "rank 1 differs in half at element 33: 0.5, rank 0 has 0");
}

TEST(ReplicaAudit, TheFirstTensorAndElementCount) {
  EXPECT_EQ(text_told(audit(2,
                            [](int rank, auto& tensors) {
                              if (rank == 0) return;
                              tensors[4].tensor.template data<float>()[0] = 3;
                              *tensors[3].tensor.template data<int64_t>() = int64_t{1} << 60;
                            })),
            "rank 1 differs in steps at element 0: 1152921504606846976, rank 0 has 0");
}

TEST(ReplicaAudit, TheMajorityIsRight) {
  const auto told = audit(4, [](int rank, auto& tensors) {
    if (rank == 0) tensors[1].tensor.template data<Half>()[0] = Half(2.0F);
  });
  EXPECT_EQ(text_told(told), "rank 0 differs in half at element 0: 2, rank 1 has 0");
  EXPECT_EQ(told[0]->ranks, std::vector<int>{0});
}

TEST(ReplicaAudit, RankZeroIsRightInATie) {
  const auto told = audit(4, [](int rank, auto& tensors) {
    if (rank >= 2) *tensors[3].tensor.template data<int64_t>() = 7;
  });
  EXPECT_EQ(text_told(told),
            "rank 2 differs in steps at element 0: 7, rank 0 has 0; rank 3 differs in it too");
}

TEST(ReplicaAudit, EveryRankThatDiffersIsNamed) {
  const auto told = audit(5, [](int rank, auto& tensors) {
    if (rank >= 2) *tensors[3].tensor.template data<int64_t>() = rank;
  });
  EXPECT_EQ(text_told(told),
            "rank 2 differs in steps at element 0: 2, rank 0 has 0; ranks 3, 4 differ in it too");
}

TEST(ReplicaAudit, SeesTheSignOfZero) {
  EXPECT_EQ(text_told(audit(2,
                            [](int rank, auto& tensors) {
                              tensors[0].tensor.template data<float>()[0] =
                                  rank == 0 ? 0.0F : -0.0F;
                            })),
            "rank 1 differs in first at element 0: -0, rank 0 has 0");
}

}  // namespace
}  // namespace lockstep::comm::replicas_test
