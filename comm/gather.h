// Gathers a text or a number of each rank, by rank. Collective calls; both throw what all_gather()
// throws.
#pragma once

#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/communicator.h"

namespace lockstep::comm {

// Gathers as many values of each rank, rank 0's first. Requires: `mine` has one size on all ranks.
template <class T>
std::vector<T> gather_values(Communicator& peers, std::span<const T> mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(mine.size() * static_cast<size_t>(peers.size()));
  peers.all_gather(std::as_bytes(mine), std::as_writable_bytes(std::span(all)));
  return all;
}

template <class T>
std::vector<T> gather_value(Communicator& peers, const T& mine) {
  return gather_values(peers, std::span<const T>(&mine, 1));
}

// Gathers texts of any lengths.
std::vector<std::string> gather_texts(Communicator& peers, std::string mine);

}  // namespace lockstep::comm
