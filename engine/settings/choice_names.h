// Enumerators and the words that stand for them in flags.
#pragma once

#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "core/error.h"

namespace lockstep {

template <class T>
using Named = std::pair<T, std::string_view>;

// The enumerator of a word. `names`: a range of Named. Requires: `word` is one of them, as the
// option table has checked.
template <class Names>
auto value_of(const Names& names, std::string_view word) {
  for (const auto& [key, name] : names) {
    if (word == name) return key;
  }
  throw InternalError(fmt::format("[choice_names] nothing is called {}", word));
}

// The word of an enumerator. Requires: it has one.
template <class Names, class Key>
std::string_view word_of(const Names& names, const Key& key) {
  for (const auto& [each, name] : names) {
    if (each == key) return name;
  }
  throw InternalError("[choice_names] a choice has no name");
}

}  // namespace lockstep
