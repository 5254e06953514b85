#include "comm/device_exchange.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/core.h>

#include "comm/gather.h"
#include "core/error.h"

namespace lockstep::comm {

void check_devices_differ(Communicator& peers, std::string_view device) {
  using Name = std::array<char, 64>;
  Name mine{};
  device.copy(mine.data(), mine.size() - 1);
  const std::vector<Name> all = gather_value(peers, mine);
  for (auto later = all.begin(); later != all.end(); ++later) {
    const auto earlier = std::find(all.begin(), later, *later);
    if (earlier == later) continue;
    throw EnvironmentError(
        fmt::format("ranks {} and {} share a GPU", earlier - all.begin(), later - all.begin()),
        fmt::format("both have {}; NCCL takes one rank per GPU", later->data()),
        "a GPU for each rank (CUDA_VISIBLE_DEVICES)",
        Remedy::kIpcExchange);
  }
}

}  // namespace lockstep::comm
