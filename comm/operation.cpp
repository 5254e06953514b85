#include "comm/operation.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/core.h>

#include "comm/seconds.h"
#include "core/check.h"
#include "core/first_few.h"

namespace lockstep::comm {
namespace {

constexpr std::array<std::string_view, 6> kKindNames = {
    "barrier", "broadcast", "all_gather", "all_reduce", "all_reduce(int64)", "allocate"};

std::string list_of_ranks(std::span<const int> ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", first_few(ranks));
}

}  // namespace

std::string to_string(const Operation& operation) {
  const std::string_view name = kKindNames[static_cast<size_t>(operation.kind)];
  if (operation.label.empty()) return fmt::format("{} #{}", name, operation.sequence);
  return fmt::format("{} #{} ({})", name, operation.sequence, operation.label);
}

std::string_view short_name(const Operation& operation) {
  if (!operation.label.empty()) return operation.label;
  return kKindNames[static_cast<size_t>(operation.kind)];
}

std::string list_of_ranks(std::span<const int> ranks, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", list_of_ranks(ranks), ranks.size() == 1 ? one : many);
}

CommError stall_error(const Operation& operation,
                      int rank,
                      std::span<const int> missing,
                      std::chrono::milliseconds waited) {
  if (missing.empty()) {
    return CommError(
        fmt::format("rank {} gave up waiting in {}", rank, to_string(operation)),
        fmt::format("it did not finish in {} s; MPI does not say which rank is missing",
                    seconds_of(waited)),
        "see which rank is stopped, out of memory or only slow",
        Remedy::kLongerWait);
  }
  const std::string who = list_of_ranks(missing);
  return CommError(fmt::format("rank {} gave up waiting in {}", rank, to_string(operation)),
                   fmt::format("{} did not take part for {} s", who, seconds_of(waited)),
                   fmt::format("see whether {} stopped, out of memory or only slow",
                               list_of_ranks(missing, "is", "are")),
                   Remedy::kLongerWait);
}

CommError lost_peer_error(const Operation& operation, int rank, std::span<const int> gone) {
  return lost_peer_error(to_string(operation), rank, gone);
}

CommError lost_peer_error(std::string_view what, int rank, std::span<const int> gone) {
  return CommError(fmt::format("rank {} lost a peer in {}", rank, what),
                   list_of_ranks(gone, "is gone", "are gone"),
                   "see what it said last, or whether it was killed for lack of memory");
}

CommError lost_peer_error(const Operation& operation,
                          int rank,
                          std::span<const int> gone,
                          std::span<const int> culprits) {
  const auto is_gone = [&](int culprit) { return std::ranges::count(gone, culprit) > 0; };
  if (std::ranges::all_of(culprits, is_gone)) return lost_peer_error(operation, rank, culprits);
  std::vector<int> victims;
  for (const int peer : gone) {
    if (std::ranges::count(culprits, peer) == 0) victims.push_back(peer);
  }
  return CommError(
      fmt::format("rank {} lost a peer in {}", rank, to_string(operation)),
      fmt::format("{} gave up waiting for {}", list_of_ranks(victims), list_of_ranks(culprits)),
      fmt::format("see whether {} stopped, out of memory or only slow",
                  list_of_ranks(culprits, "is", "are")),
      Remedy::kLongerWait);
}

UsageError no_library_sum_error() {
  return UsageError("there is no all-reduce of MPI's own",
                    "these ranks do not talk through MPI",
                    "use the tree, the ring or the star",
                    Remedy::kAlgorithm);
}

void check_root(int root, int ranks) {
  LS_CHECK(0 <= root && root < ranks, "[broadcast] root: got {} of {} ranks", root, ranks);
}

void check_all_gather(size_t row, size_t all, int ranks) {
  LS_CHECK(all == row * static_cast<size_t>(ranks),
           "[all_gather] all: got {} bytes, expected {} from each of {} ranks",
           all,
           row,
           ranks);
}

void check_all_reduce_dtype(Dtype dtype) {
  if (dtype == Dtype::kF32 || dtype == Dtype::kF16 || dtype == Dtype::kBF16) return;
  throw DtypeError(
      fmt::format("[all_reduce] values: dtype {}, expected f32, f16 or bf16", name_of(dtype)));
}

}  // namespace lockstep::comm
