// Whether gradients travel by NCCL, and the ranks that do.
#pragma once

#include <memory>
#include <string>

#include "comm/gradient_reducer.h"
#include "comm/nccl/ranks.h"
#include "core/communicator.h"
#include "trainers/config/run_config.h"

namespace lockstep::trainers {

struct NcclRanks {
  std::unique_ptr<comm::nccl::Ranks> ranks;  // null: gradients travel as they do without NCCL
  std::string note;                          // why, where it was for the best
};

// A collective call. Settles config.transport and config.exchange.nccl; an error ends all ranks, as
// on_all_ranks() does: NCCL that was asked for and is not to be had, two ranks on one GPU, ranks
// that do not meet. Requires: a resolved config; the rank's device is chosen.
NcclRanks meet_over_nccl(RunConfig& config, Communicator& ranks);

// How a reducer's buckets travel over `ranks`, which may be null.
comm::MakeDeviceExchange exchange_over(comm::nccl::Ranks* ranks);

}  // namespace lockstep::trainers
