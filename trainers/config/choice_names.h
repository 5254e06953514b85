// Enumerators and the words that flags spell them with.
#pragma once

#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "core/error.h"

namespace lockstep::trainers {

template <class T>
using Named = std::pair<T, std::string_view>;

// `names`: a range of Named. Requires: `text` is one of its words, as the
// option table has checked.
template <class Names>
auto meant(const Names& names, std::string_view text) {
  for (const auto& [key, name] : names) {
    if (text == name) return key;
  }
  throw InternalError(fmt::format("[choice_names] nothing is called {}", text));
}

}  // namespace lockstep::trainers
