#include "comm/gather.h"

#include <algorithm>
#include <cstdint>
#include <utility>

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

}  // namespace lockstep::comm
