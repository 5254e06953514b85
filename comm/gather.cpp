#include "comm/gather.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
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

std::vector<std::string> collect_texts(Communicator& peers, const std::string& mine) {
  constexpr size_t kPart = size_t{1} << 20;
  const std::vector<uint64_t> lengths = gather_value(peers, static_cast<uint64_t>(mine.size()));
  std::vector<std::string> texts;
  if (peers.rank() == 0) texts.push_back(mine);
  std::vector<std::byte> part;
  for (int rank = 1; rank < peers.size(); ++rank) {
    std::string text;
    const size_t length = lengths[static_cast<size_t>(rank)];
    for (size_t begin = 0; begin < length; begin += kPart) {
      part.resize(std::min(kPart, length - begin));
      if (peers.rank() == rank) std::memcpy(part.data(), mine.data() + begin, part.size());
      peers.broadcast(part, rank);
      if (peers.rank() == 0) text.append(reinterpret_cast<const char*>(part.data()), part.size());
    }
    if (peers.rank() == 0) texts.push_back(std::move(text));
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
