// Where each rank can be reached: what rank 0 sends when all have come.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/tcp/address.h"

namespace lockstep::comm::tcp {

struct RankAddress {
  Address::Bytes address{};
  uint64_t host = 0;
  uint64_t port = 0;
};
static_assert(sizeof(RankAddress) == 32, "no padding: it goes over the wire");

struct RankTable {
  uint64_t secret = 0;  // that the ranks show each other
  std::vector<RankAddress> ranks;
};

}  // namespace lockstep::comm::tcp
