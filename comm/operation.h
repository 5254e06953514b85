// A collective call as errors name it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/dtype.h"
#include "core/error.h"

#pragma GCC visibility push(default)
namespace lockstep::comm {

// How long a rank waits for its peers without any progress.
constexpr std::chrono::milliseconds kDefaultStallAbort = std::chrono::seconds(60);

// Called about a peer that did not come to a communicator's end, where no caller could catch an
// error. Must not throw. May be empty.
using LostAtEnd = std::function<void(const Error& error)>;

struct Operation {
  enum class Kind : uint8_t {
    kBarrier,
    kBroadcast,
    kAllGather,
    kAllReduce,
    kAllReduceInt64,
    kAllocate,
  };

  Kind kind = Kind::kBarrier;
  uint64_t sequence = 0;        // from 1, counted alike on every rank
  std::string_view label = {};  // borrowed; says more to the user, such as a bucket's tensors
};

std::string to_string(const Operation& operation);  // "all_reduce #118 (bucket 2: ...)"

// The error about the ranks `missing`, which did not take part in `operation` for as long as
// `waited`. Empty: nobody knows whose part is missing.
CommError stall_error(const Operation& operation,
                      int rank,
                      std::span<const int> missing,
                      std::chrono::milliseconds waited);

// The error about the ranks `gone`, which ended before their part of `operation` was done.
CommError lost_peer_error(const Operation& operation, int rank, std::span<const int> gone);
CommError lost_peer_error(std::string_view what, int rank, std::span<const int> gone);

// The error for Algorithm::kLibrary on a transport without a library.
UsageError no_library_sum_error();

// Arguments that every communicator checks. Errors: InternalError unless 0 <= root < ranks, or
// unless `all` has room for `row` bytes of each rank; DtypeError unless f32, f16 or bf16.
void check_root(int root, int ranks);
void check_all_gather(size_t row, size_t all, int ranks);
void check_all_reduce_dtype(Dtype dtype);

}  // namespace lockstep::comm
#pragma GCC visibility pop

namespace lockstep::comm {

// "bucket 2: ...", or the kind of call where it has no label.
std::string_view short_name(const Operation& operation);

// The error about the ranks `gone`. `culprits` are the ranks at fault: those of `gone` that did not
// give up themselves, and those that the others gave up on, which may only be slow.
CommError lost_peer_error(const Operation& operation,
                          int rank,
                          std::span<const int> gone,
                          std::span<const int> culprits);

// "rank 2 is", "ranks 2, 3 are"
std::string list_of_ranks(std::span<const int> ranks, std::string_view one, std::string_view many);

}  // namespace lockstep::comm
