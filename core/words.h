// Text of command lines and small files: splitting, parsing numbers, finding misspelled words, and
// safe printing.
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

// ASCII letters in lower case.
std::string to_lower(std::string_view text);

// Whole-string conversions; nothing for other text. "true", "false", "1", "0", in any case.
std::optional<bool> parse_bool(std::string_view text);
std::optional<int64_t> parse_int(std::string_view text);
std::optional<double> parse_float(std::string_view text);  // finite only

// The candidate nearest to `word`: one that begins with it, ignoring case, - and _, where it has
// three letters or more, or the one with the fewest insertions, deletions, replacements and swaps
// of adjacent letters. Empty when more than a third of the letters differ.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates);

// Makes text from a file safe to print: control bytes, backslashes and bytes above 0x7e become
// \xNN; it is cut to `limit` bytes of input, and then ends in "...".
std::string printable(std::string_view text, size_t limit = 100);

// Makes messages that may quote foreign text safe for a terminal: control characters but tab and
// newline, marks that turn text around, and bytes that are not UTF-8, become \xNN.
std::string without_controls(std::string_view text);

// "1 step", "2 steps".
std::string counted(int64_t count, std::string_view noun);

// "12 B", "1.5 KiB", "25.1 MiB", "2.0 GiB".
std::string size_text(int64_t bytes);

// Counts the characters of UTF-8 text.
int characters_of(std::string_view text);

// The first `count` characters.
std::string cut_to(std::string_view text, int count);

}  // namespace lockstep
