// The first few items of a list that may be long, for messages.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include <fmt/ranges.h>

namespace lockstep {

inline constexpr size_t kListedItems = 12;

// "3, 17 and 30 more"; all of them where they are at most `most`.
template <class List>
std::string first_few(const List& items,
                      std::string_view separator = ", ",
                      size_t most = kListedItems) {
  const std::span all(items);
  const size_t shown = std::min(all.size(), most);
  std::string text = fmt::format("{}", fmt::join(all.first(shown), separator));
  if (shown < all.size()) text += fmt::format(" and {} more", all.size() - shown);
  return text;
}

}  // namespace lockstep
