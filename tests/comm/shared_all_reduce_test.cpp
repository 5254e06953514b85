// Every algorithm against the definition of the sum, in memory that ranks share and in other
// memory.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "comm/thread_communicator.h"
#include "tests/support/collectives.h"

namespace lockstep::comm {
namespace {

constexpr std::array kAlgorithms = {Algorithm::kTree, Algorithm::kRing, Algorithm::kStar};
constexpr int64_t kOddOffset = 3;  // elements; neither f32 nor f16 is aligned to anything there

// 1e8, 1, -1e8 and 1 dealt to ranks in all orders, beginning at every rank.
std::vector<float> placements(int rank) {
  std::array<float, 4> cards = {-1e8F, 1, 1, 1e8F};
  std::vector<float> values;
  do {
    for (size_t shift = 0; shift < 4; ++shift) {
      values.push_back(cards[(static_cast<size_t>(rank) + shift) % 4]);
    }
  } while (std::next_permutation(cards.begin(), cards.end()));
  return values;
}

std::vector<float> values_of(int rank, int64_t count) {
  std::vector<float> values = testing::cancelling_values(rank, count);
  const std::vector<float> first = placements(rank);
  std::copy_n(first.begin(), std::min(first.size(), values.size()), values.begin());
  return values;
}

// In T's range: f16 ends at 65504.
template <class T>
T leaf_of(float value) {
  return std::is_same_v<T, Half> ? T(value * 0x1p-15F) : T(value);
}

template <class T>
T fold(std::span<const T> leaves) {
  if (leaves.size() == 1) return leaves[0];
  const size_t left = std::bit_floor(leaves.size() - 1);
  return T(static_cast<float>(fold(leaves.first(left))) +
           static_cast<float>(fold(leaves.subspan(left))));
}

// Those of fewer values are the first of these.
template <class T>
std::vector<T> golden_sums(int ranks, int64_t count) {
  std::vector<std::vector<float>> values;
  for (int rank = 0; rank < ranks; ++rank) values.push_back(values_of(rank, count));
  std::vector<T> sums;
  std::vector<T> leaves(values.size());
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    for (size_t rank = 0; rank < leaves.size(); ++rank) {
      leaves[rank] = leaf_of<T>(values[rank][i]);
    }
    sums.push_back(fold<T>(leaves));
  }
  return sums;
}

template <class T>
void fill(Tensor& tensor, int rank) {
  const std::vector<float> values = values_of(rank, tensor.numel());
  std::ranges::transform(values, tensor.span<T>().begin(), leaf_of<T>);
}

template <class T>
bool same_bytes(const Tensor& tensor, std::span<const T> want) {
  return want.empty() || std::memcmp(tensor.bytes(), want.data(), tensor.nbytes()) == 0;
}

// Another order of summation: within a few roundings of the largest value, and the same everywhere.
template <class T>
void check_ring(Communicator& peers, const Tensor& tensor, std::span<const T> want) {
  const float unit = std::is_same_v<T, Half> ? 0x1p-11F * 0x1p-15F : 0x1p-24F;
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(static_cast<float>(tensor.span<T>()[i]),
                static_cast<float>(want[i]),
                unit * 1e8F * static_cast<float>(peers.size() * peers.size()))
        << "element " << i;
  }
  std::vector<std::byte> all(tensor.nbytes() * static_cast<size_t>(peers.size()));
  peers.all_gather({tensor.bytes(), tensor.nbytes()}, all);
  for (size_t begin = 0; begin < all.size(); begin += tensor.nbytes()) {
    ASSERT_EQ(std::memcmp(&all[begin], all.data(), tensor.nbytes()), 0) << "byte " << begin;
  }
}

template <class T>
void check_all_reduces(Communicator& peers, Tensor memory, std::span<const T> golden) {
  for (const int64_t count : testing::collective_counts(peers.size())) {
    const auto want = golden.first(static_cast<size_t>(count));
    for (const Algorithm algorithm : kAlgorithms) {
      Tensor values = memory.slice(kOddOffset, count);
      fill<T>(values, peers.rank());
      peers.start_all_reduce({.values = values, .algorithm = algorithm})->wait();
      if (algorithm == Algorithm::kRing) {
        check_ring(peers, values, want);
      } else {
        EXPECT_TRUE(same_bytes(values, want))
            << count << " values, algorithm " << static_cast<int>(algorithm);
      }
    }
  }
}

template <class T>
void check_everywhere(int ranks) {
  constexpr int64_t kMost = 40009;
  const Shape shape = {kMost + 2 * kOddOffset};
  constexpr Dtype kDtype = DtypeOf<T>::kValue;
  const std::vector<T> golden = golden_sums<T>(ranks, kMost);
  spawn_ranks(ranks, [&](Communicator& peers) {
    check_all_reduces<T>(peers, peers.allocate(shape, kDtype), golden);
    check_all_reduces<T>(peers, Tensor::zeros(shape, kDtype), golden);
  });
}

class SharedAllReduce : public ::testing::TestWithParam<int> {};

TEST_P(SharedAllReduce, F32FollowsTheDefinition) {
  check_everywhere<float>(GetParam());
}
TEST_P(SharedAllReduce, F16FollowsTheDefinition) {
  check_everywhere<Half>(GetParam());
}
TEST_P(SharedAllReduce, NeighboursAreLeftAlone) {
  spawn_ranks(GetParam(), [](Communicator& peers) {
    for (const Algorithm algorithm : kAlgorithms) {
      Tensor memory = peers.allocate({1000}, Dtype::kF32);
      std::ranges::fill(memory.span<float>(), 1.0F);
      peers.start_all_reduce({.values = memory.slice(17, 900), .algorithm = algorithm})->wait();
      peers.barrier();
      for (int64_t i = 0; i < 1000; ++i) {
        const bool inside = 17 <= i && i < 917;
        ASSERT_EQ(memory.data<float>()[i], inside ? static_cast<float>(peers.size()) : 1.0F) << i;
      }
    }
  });
}

TEST_P(SharedAllReduce, PartsOfASumAreScattered) {
  constexpr int64_t kMostInAPart = 10007;  // more than the staging area holds for each of 7 ranks
  const int ranks = GetParam();
  const std::vector<float> golden = golden_sums<float>(ranks, kMostInAPart * ranks);
  spawn_ranks(ranks, [&](Communicator& peers) {
    for (const int64_t part : {int64_t{0}, int64_t{1}, kMostInAPart}) {
      const std::vector<float> values = values_of(peers.rank(), part * ranks);
      std::vector<float> mine(static_cast<size_t>(part));
      peers.reduce_scatter_sum(values, mine);
      const auto first = golden.begin() + part * peers.rank();
      EXPECT_TRUE(std::equal(mine.begin(), mine.end(), first))
          << part << " values on rank " << peers.rank();
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, SharedAllReduce, ::testing::Range(1, 18));

// Larger than the staging area.
TEST(SharedCollectives, GoPieceByPiece) {
  constexpr size_t kCount = 100003;
  spawn_ranks(3, [](Communicator& peers) {
    std::vector<float> floats(kCount, static_cast<float>(peers.rank()));
    peers.all_reduce_sum(std::span(floats));
    EXPECT_EQ(floats, std::vector<float>(kCount, 3));

    std::vector<int64_t> integers(kCount);
    for (size_t i = 0; i < kCount; ++i) integers[i] = static_cast<int64_t>(i) * (peers.rank() + 1);
    peers.all_reduce_sum(std::span(integers));
    for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(integers[i], static_cast<int64_t>(i) * 6);

    std::vector<int64_t> all(3 * kCount);
    integers[kCount - 1] = peers.rank();
    peers.all_gather(std::as_bytes(std::span(integers)), std::as_writable_bytes(std::span(all)));
    for (size_t i = 0; i < all.size(); ++i) {
      const size_t at = i % kCount;
      const size_t want = at == kCount - 1 ? i / kCount : 6 * at;
      ASSERT_EQ(all[i], static_cast<int64_t>(want)) << i;
    }
    peers.broadcast(std::as_writable_bytes(std::span(integers)), 2);
    EXPECT_EQ(integers[kCount - 1], 2);
  });
}

}  // namespace
}  // namespace lockstep::comm
