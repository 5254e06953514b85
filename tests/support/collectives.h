// Checks of a communicator, which each rank runs. Every transport must pass the same checks.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "core/communicator.h"
#include "core/mt19937.h"

namespace lockstep::testing {

// Counts around the number of ranks, and some that are not divisible by a power of two.
inline std::vector<int64_t> collective_counts(int ranks) {
  return {0, 1, ranks - 1, ranks, ranks + 1, 7919, 40009};
}

// A rank's values, whose sum depends on the order of summation: magnitudes from 1e-8 to 1e8 with
// both signs. In each fourth element the ranks in turn hold 1e8, 1, -1e8 and 1.
inline std::vector<float> canceling_values(int rank, int64_t count) {
  constexpr float kCancel[] = {1e8F, 1, -1e8F, 1};
  std::vector<float> values(static_cast<size_t>(count));
  Mt19937(static_cast<uint64_t>(rank) + 1).uniform(values, -1, 1);
  for (size_t i = 0; i < values.size(); ++i) {
    constexpr float kScale[] = {1e8F, 1, 1e-8F};
    values[i] *= kScale[(i + static_cast<size_t>(rank)) % 3];
    if (i % 4 == 0) values[i] = kCancel[(i / 4 + static_cast<size_t>(rank)) % 4];
  }
  return values;
}

// The definition of the sum: the left subtree holds the largest power of two below the number of
// leaves.
inline float tree_fold(const std::vector<float>& leaves, size_t begin, size_t end) {
  if (end - begin == 1) return leaves[begin];
  const size_t middle = begin + std::bit_floor(end - begin - 1);
  return tree_fold(leaves, begin, middle) + tree_fold(leaves, middle, end);
}

inline std::vector<float> sum_of_canceling_values(int ranks, int64_t count) {
  std::vector<std::vector<float>> leaves;
  for (int rank = 0; rank < ranks; ++rank) leaves.push_back(canceling_values(rank, count));
  std::vector<float> sums(static_cast<size_t>(count));
  std::vector<float> element(static_cast<size_t>(ranks));
  for (size_t i = 0; i < sums.size(); ++i) {
    for (size_t rank = 0; rank < element.size(); ++rank) element[rank] = leaves[rank][i];
    sums[i] = tree_fold(element, 0, element.size());
  }
  return sums;
}

inline void check_float_sums(Communicator& peers) {
  for (const int64_t count : collective_counts(peers.size())) {
    std::vector<float> values(static_cast<size_t>(count));
    std::vector<float> want(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      const auto base = static_cast<float>(i % 1000 + 1);
      values[i] = base * static_cast<float>(peers.rank() + 1);
      want[i] = base * static_cast<float>(peers.size() * (peers.size() + 1) / 2);
    }
    peers.all_reduce_sum(std::span(values));
    EXPECT_EQ(values, want) << count << " integers on rank " << peers.rank();
  }
}

inline void check_sums_in_tree_order(Communicator& peers) {
  for (const int64_t count : collective_counts(peers.size())) {
    std::vector<float> values = canceling_values(peers.rank(), count);
    peers.all_reduce_sum(std::span(values));
    EXPECT_EQ(values, sum_of_canceling_values(peers.size(), count))
        << count << " values on rank " << peers.rank();
  }
}

inline void check_int64_sums(Communicator& peers) {
  for (const int64_t count : collective_counts(peers.size())) {
    const int64_t large = std::numeric_limits<int64_t>::max() / 1000;
    std::vector<int64_t> values(static_cast<size_t>(count));
    std::vector<int64_t> want(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t base = large - static_cast<int64_t>(i);
      values[i] = base * (peers.rank() + 1);
      want[i] = base * (peers.size() * (peers.size() + 1) / 2);
    }
    peers.all_reduce_sum(std::span(values));
    EXPECT_EQ(values, want) << count << " integers on rank " << peers.rank();
  }
}

inline void check_broadcasts(Communicator& peers) {
  for (int root = 0; root < peers.size(); ++root) {
    for (const size_t count : {0, 1, 1009}) {
      std::vector<int> values(count, peers.rank());
      peers.broadcast(std::as_writable_bytes(std::span(values)), root);
      EXPECT_EQ(values, std::vector<int>(count, root)) << "on rank " << peers.rank();
    }
  }
}

inline void check_all_gathers(Communicator& peers) {
  for (const size_t count : {0, 1, 1009}) {
    std::vector<int> mine(count, peers.rank() + 1);
    std::vector<int> all(count * static_cast<size_t>(peers.size()));
    peers.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
    for (size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(all[i], static_cast<int>(i / count) + 1) << "element " << i;
    }
  }
}

inline void check_collectives(Communicator& peers) {
  check_float_sums(peers);
  check_broadcasts(peers);
  check_sums_in_tree_order(peers);
  peers.barrier();
  check_all_gathers(peers);
  check_int64_sums(peers);
}

}  // namespace lockstep::testing
