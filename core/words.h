// Words of command lines and small files: cutting, numbers, near misses, safe printing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// "a|b" -> {"a", "b"}; "" -> {}.
std::vector<std::string_view> split_words(std::string_view words, char separator);

// Whole-string conversions; nothing for other text. "true", "false", "1", "0", in any case.
std::optional<bool> parse_bool(std::string_view text);
std::optional<int64_t> parse_int(std::string_view text);
std::optional<double> parse_float(std::string_view text);  // finite only

// The candidate nearest to `word`: one that begins with it, but for case, - and _, or the one with
// the fewest insertions, deletions, replacements and swaps of neighbors. Empty where more than a
// third of the letters differ.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates);

// `text` with control bytes, backslashes and bytes above 0x7e as \xNN, cut to `limit` bytes of
// input (then ending in "..."): text from files, made safe to print.
std::string printable(std::string_view text, size_t limit = 100);

// `text` with all control characters but tab and newline as \xNN, and bytes that are not UTF-8:
// lines of ours with words of others in them, made safe for a terminal.
std::string without_controls(std::string_view text);

}  // namespace lockstep
