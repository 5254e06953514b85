// Gathers a text or a value from each rank, broadcasts rank 0's text, and finds out whether a step
// succeeded on all ranks.
#pragma once

#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/communicator.h"
#include "core/function_ref.h"

namespace lockstep::comm {

// Gathers the same number of values from each rank, rank 0's first. Requires: `mine` has one size
// on all ranks.
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

// Gathers them on rank 0 alone: the other ranks get nothing, and need memory for only a part of a
// text.
std::vector<std::string> collect_texts(Communicator& peers, const std::string& mine);

// Returns rank 0's text on every rank.
std::string broadcast_text(Communicator& peers, const std::string& text);

// Runs `step` on every rank. Returns "" when it succeeded on all of them, else the problem of the
// first rank on which it failed; all ranks get the same text. A collective call. Errors: those of
// `ranks`; what `step` throws besides lockstep::Error.
std::string attempt(Communicator& ranks, FunctionRef<void()> step);

}  // namespace lockstep::comm
