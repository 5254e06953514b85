#include "engine/state/class_names.h"

#include <algorithm>
#include <cstddef>

#include <fmt/core.h>

#include "core/words.h"

namespace lockstep {

std::optional<std::string> other_class(const std::vector<std::string>& ours,
                                       const std::vector<std::string>& theirs,
                                       const std::string& file) {
  if (ours.empty() || theirs.empty() || ours == theirs) return std::nullopt;
  const auto first = static_cast<size_t>(std::ranges::mismatch(ours, theirs).in1 - ours.begin());
  const auto name = [&](const std::vector<std::string>& names) {
    return first < names.size() ? fmt::format("'{}'", printable(names[first]))
                                : std::string("none");
  };
  return fmt::format("class {} is {} here, {} in {}", first, name(ours), name(theirs), file);
}

}  // namespace lockstep
