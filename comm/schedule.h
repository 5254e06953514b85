// The ranks' parts of an all-reduce and their order: pure functions of rank and number of ranks.
//
// Tree and star. The values are cut into one slice a rank. The owner of a slice collects the
// others' versions of it, adds them in core/tree.h's order, and sends the sum to all ranks. The
// star is the case of one owner for everything. Each rank moves 2(n-1)/n of the values; the star's
// owner (n-1) times all of them.
//
// Ring. Ranks stand in a circle and only talk to their neighbors. In step s of the first half rank
// r passes slice r-s to the right and adds the slice that comes from the left to its own; after n-1
// steps slice r+1 is complete at rank r. The second half passes the complete slices on in the same
// way. Each rank moves 2(n-1)/n of the values in 2(n-1) steps.
#pragma once

#include <algorithm>
#include <cstdint>

#pragma GCC visibility push(default)
namespace lockstep::comm {

struct Slice {
  int64_t begin = 0;
  int64_t count = 0;

  constexpr int64_t end() const { return begin + count; }
  constexpr bool operator==(const Slice&) const = default;
};

// Slice `index` of `count` values cut as evenly as possible.
constexpr Slice slice_of(int64_t count, int ranks, int index) {
  const int64_t begin = count * index / ranks;
  return {begin, count * (index + 1) / ranks - begin};
}

// Slice `index` of `count` values cut between whole units as evenly as possible: the last slices
// may be short, or empty.
constexpr Slice slice_of_units(int64_t count, int64_t unit, int ranks, int index) {
  const Slice units = slice_of((count + unit - 1) / unit, ranks, index);
  const int64_t begin = std::min(count, units.begin * unit);
  return {begin, std::min(count, units.end() * unit) - begin};
}

constexpr int right_of(int rank, int ranks) {
  return (rank + 1) % ranks;
}
constexpr int left_of(int rank, int ranks) {
  return (rank + ranks - 1) % ranks;
}

// Steps of each half of the ring.
constexpr int ring_steps(int ranks) {
  return ranks - 1;
}

struct RingStep {
  int send = 0;     // index of the slice that goes to the right
  int receive = 0;  // index of the slice that comes from the left
};

// First half: what is received is added to the own slice.
constexpr RingStep ring_reduce_step(int rank, int ranks, int step) {
  const int send = (rank - step + ranks) % ranks;
  return {send, left_of(send, ranks)};
}

// Second half: what is received replaces the own slice.
constexpr RingStep ring_gather_step(int rank, int ranks, int step) {
  const int send = (rank + 1 - step + ranks) % ranks;
  return {send, left_of(send, ranks)};
}

}  // namespace lockstep::comm
#pragma GCC visibility pop
