// Which known word a mistyped one was meant to be.
#pragma once

#include <span>
#include <string_view>

namespace lockstep::trainers {

// Insertions, deletions, replacements and swaps of neighbors that turn a into b.
int edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to `word`, or empty when none is near: more than a third of the letters
// differ, and `word` begins no candidate.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace lockstep::trainers
