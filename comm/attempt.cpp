#include "comm/attempt.h"

#include <algorithm>

#include <fmt/core.h>

#include "comm/gather.h"
#include "core/error.h"

namespace lockstep::comm {

std::string attempt(Communicator& ranks, FunctionRef<void()> step) {
  std::string mine;
  try {
    step();
  } catch (const Error& error) {
    mine = fmt::format("rank {}: {}{}{}",
                       ranks.rank(),
                       error.what(),
                       error.why().empty() ? "" : ": ",
                       error.why());
  }
  const std::vector<std::string> all = gather_texts(ranks, std::move(mine));
  const auto failed = std::ranges::find_if(all, [](const auto& text) { return !text.empty(); });
  return failed == all.end() ? std::string() : *failed;
}

}  // namespace lockstep::comm
