// Checks of start_all_reduce, which each rank runs. Every transport must pass the same checks.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/communicator.h"
#include "tests/reference/peer_sum.h"
#include "tests/support/close.h"
#include "tests/support/collectives.h"
#include "tests/support/float_types.h"

namespace lockstep::testing {

inline constexpr Algorithm kExchanges[] = {Algorithm::kTree, Algorithm::kRing, Algorithm::kStar};

// Values whose sum is right only in the right order of summation. Even elements hold large, 1, 1
// and -large at four consecutive ranks, in each of their orders in turn; odd elements have all
// magnitudes.
inline std::vector<double> placed_values(int rank, int ranks, int64_t count, Dtype dtype) {
  const double large = dtype == Dtype::kF32 ? 1e8 : 1024;  // large + 1 = large, 17 of them finite
  std::vector<std::array<double, 4>> orders;
  std::array<double, 4> values_in_order = {-large, 1, 1, large};
  do {
    orders.push_back(values_in_order);
  } while (std::next_permutation(values_in_order.begin(), values_in_order.end()));

  const std::vector<float> others = canceling_values(rank, count);
  std::vector<double> values(others.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t placement = i / 2;
    const size_t first_rank = placement / orders.size() % static_cast<size_t>(ranks);
    const size_t position =
        (static_cast<size_t>(rank + ranks) - first_rank) % static_cast<size_t>(ranks);
    values[i] = i % 2 == 1     ? static_cast<double>(others[i]) * (large / 1e8)
                : position < 4 ? orders[placement % orders.size()][position]
                               : 0;
  }
  return values;
}

inline Tensor placed_tensor(int rank, int ranks, int64_t count, Dtype dtype) {
  return tensor_of(placed_values(rank, ranks, count, dtype), {count}, dtype);
}

// The sum that every rank must get.
struct ExpectedSum {
  ExpectedSum(int ranks, int64_t count, Dtype dtype) : absolute(static_cast<size_t>(count)) {
    std::vector<std::vector<double>> leaves;
    for (int rank = 0; rank < ranks; ++rank) {
      leaves.push_back(values_of(placed_tensor(rank, ranks, count, dtype)));
      for (size_t i = 0; i < absolute.size(); ++i) absolute[i] += std::abs(leaves.back()[i]);
    }
    tree = tensor_of(reference::peer_sum(leaves, format_of(dtype)), {count}, dtype);
  }

  Tensor tree;
  std::vector<double> absolute;  // sums of magnitudes
};

// Expects equal bytes on all ranks.
inline void expect_one_copy(Communicator& peers, const Tensor& values) {
  std::vector<std::byte> all(values.nbytes() * static_cast<size_t>(peers.size()));
  peers.all_gather({values.bytes(), values.nbytes()}, all);
  for (size_t begin = 0; begin < all.size(); begin += values.nbytes()) {
    EXPECT_TRUE(std::equal(values.bytes(), values.bytes() + values.nbytes(), &all[begin]))
        << "rank " << begin / values.nbytes() << " differs from rank " << peers.rank();
  }
}

// Expects a difference within the rounding errors of two sums in any order.
inline void expect_near(const Tensor& got, const ExpectedSum& want, int ranks) {
  const double unit = std::ldexp(1, -1 - format_of(got.dtype()).mantissa_bits);
  for (int64_t i = 0; i < got.numel(); ++i) {
    const double bound = 2 * ranks * unit * want.absolute[static_cast<size_t>(i)];
    ASSERT_NEAR(get(got, i), get(want.tree, i), bound) << "element " << i;
  }
}

// Requires: `values` holds the rank's placed_tensor.
inline void check_all_reduce(Communicator& peers,
                             Algorithm algorithm,
                             const Tensor& values,
                             const ExpectedSum& want) {
  peers.start_all_reduce({.values = values, .algorithm = algorithm})->wait();
  if (algorithm == Algorithm::kTree || algorithm == Algorithm::kStar) {
    EXPECT_TRUE(same_bits(values, want.tree))
        << values.numel() << " values on rank " << peers.rank() << ", algorithm "
        << static_cast<int>(algorithm);
  } else {
    expect_near(values, want, peers.size());
    expect_one_copy(peers, values);
  }
}
inline void check_all_reduce(Communicator& peers, Algorithm algorithm, const ExpectedSum& want) {
  const Tensor& sum = want.tree;
  const Tensor values = placed_tensor(peers.rank(), peers.size(), sum.numel(), sum.dtype());
  check_all_reduce(peers, algorithm, values, want);
}

// Small integers, whose sum is exact in any order; no two slices are alike.
inline double integer_at(int rank, int64_t i) {
  return static_cast<double>((i % 11 + 1) * (rank + 1));
}
inline Tensor integers_of(int rank, int64_t count, Dtype dtype) {
  Tensor values = Tensor::empty({count}, dtype);
  for (int64_t i = 0; i < count; ++i) set(values, i, integer_at(rank, i));
  return values;
}
inline void expect_sum_of_integers(const Tensor& values, int ranks) {
  for (int64_t i = 0; i < values.numel(); ++i) {
    ASSERT_EQ(get(values, i), integer_at(0, i) * ranks * (ranks + 1) / 2) << "element " << i;
  }
}

inline void check_sums_of_integers(Communicator& peers, Algorithm algorithm, Dtype dtype) {
  for (const int64_t count : collective_counts(peers.size())) {
    const Tensor values = integers_of(peers.rank(), count, dtype);
    peers.start_all_reduce({.values = values, .algorithm = algorithm})->wait();
    expect_sum_of_integers(values, peers.size());
  }
}

// Several all-reduces of different types are in progress at once. Each rank finishes them in its
// own order, and some ranks only poll. All ranks make other calls in between.
inline void check_works_in_flight(Communicator& peers) {
  constexpr size_t kWorks = 12;
  std::vector<Tensor> values;
  std::vector<std::unique_ptr<Work>> works;
  for (size_t i = 0; i < kWorks; ++i) {
    const std::vector<int64_t> counts = collective_counts(peers.size());
    const int64_t count = counts[i % counts.size()];
    values.push_back(integers_of(peers.rank(), count, i % 2 == 0 ? Dtype::kF32 : Dtype::kF16));
    works.push_back(peers.start_all_reduce(
        {.values = values.back(), .algorithm = kExchanges[i % std::size(kExchanges)]}));
  }
  check_all_gathers(peers);

  const auto rank = static_cast<size_t>(peers.rank());
  for (size_t i = 0; i < kWorks; ++i) {
    const size_t forward = (i + rank) % kWorks;
    Work& work = *works[rank % 2 == 0 ? forward : kWorks - 1 - forward];
    if (rank % 3 == 2) {
      while (!work.advance()) std::this_thread::yield();
    } else {
      work.wait();
    }
  }
  for (size_t i = 0; i < kWorks; ++i) {
    EXPECT_TRUE(works[i]->advance());
    expect_sum_of_integers(values[i], peers.size());
  }
}

// Returns the bytes that this rank moved in an all-reduce of `count` values. The reduced bytes must
// be those of the values.
inline int64_t moved_bytes(Communicator& peers, Algorithm algorithm, int64_t count, Dtype dtype) {
  const Tensor values = integers_of(peers.rank(), count, dtype);
  const Traffic before = peers.traffic();
  peers.start_all_reduce({.values = values, .algorithm = algorithm})->wait();
  EXPECT_EQ(peers.traffic().reduced_bytes - before.reduced_bytes,
            static_cast<int64_t>(values.nbytes()));
  return peers.traffic().moved_bytes - before.moved_bytes;
}

// 2(n-1)/n of the values at each rank for tree and ring; for the star (n-1) times the values at
// rank 0 and once at the others.
inline void check_traffic(Communicator& peers) {
  const int64_t others = peers.size() - 1;
  for (const int64_t count : collective_counts(peers.size())) {
    for (const Dtype dtype : {Dtype::kF32, Dtype::kF16}) {
      const auto size = static_cast<int64_t>(size_of(dtype));
      for (const Algorithm algorithm : {Algorithm::kTree, Algorithm::kRing}) {
        int64_t moved = moved_bytes(peers, algorithm, count, dtype);
        EXPECT_GE(moved, 2 * others * size * (count / peers.size()));
        EXPECT_LE(moved, 2 * others * size * ((count + others) / peers.size()));
        peers.all_reduce_sum({&moved, 1});
        EXPECT_EQ(moved, 2 * others * size * count) << "of all ranks together";
      }
      EXPECT_EQ(moved_bytes(peers, Algorithm::kStar, count, dtype),
                size * count * (peers.rank() == 0 ? others : 1));
    }
  }
}

}  // namespace lockstep::testing
