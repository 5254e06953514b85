#include "comm/gather.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/core.h>

#include "core/error.h"

namespace lockstep::comm {

std::vector<std::string> gather_texts(Communicator& peers, std::string mine) {
  const std::vector<uint64_t> lengths = gather_value(peers, static_cast<uint64_t>(mine.size()));
  const size_t longest = std::ranges::max(lengths);
  if (longest == 0) return std::vector<std::string>(lengths.size());
  mine.resize(longest);
  const std::vector<char> all = gather_values(peers, std::span<const char>(mine));

  std::vector<std::string> texts;
  texts.reserve(lengths.size());
  for (size_t rank = 0; rank < lengths.size(); ++rank) {
    texts.emplace_back(all.data() + rank * longest, lengths[rank]);
  }
  return texts;
}

std::string broadcast_text(Communicator& peers, const std::string& text) {
  int64_t size = std::ssize(text);
  peers.broadcast(std::as_writable_bytes(std::span(&size, 1)), 0);
  std::string copy = text;
  copy.resize(static_cast<size_t>(size));
  peers.broadcast(std::as_writable_bytes(std::span(copy)), 0);
  return copy;
}

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
