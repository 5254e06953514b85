#include "core/words.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace lockstep {
namespace {

template <class T>
std::optional<T> parse_whole(std::string_view text) {
  T value{};
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

// Lower case, without - and _, since users type names in many ways.
std::string plain(std::string_view word) {
  std::string letters = to_lower(word);
  std::erase_if(letters, [](char c) { return c == '_' || c == '-'; });
  return letters;
}

int edit_distance(std::string_view a, std::string_view b) {
  const size_t columns = b.size() + 1;
  std::vector<int> cost((a.size() + 1) * columns);
  const auto at = [&](size_t i, size_t j) -> int& { return cost[i * columns + j]; };
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        at(i, j) = static_cast<int>(i + j);
        continue;
      }
      const int replace = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      at(i, j) = std::min({replace, at(i - 1, j) + 1, at(i, j - 1) + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
      }
    }
  }
  return at(a.size(), b.size());
}

bool begins_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

}  // namespace

std::vector<std::string_view> split_words(std::string_view words, char separator) {
  std::vector<std::string_view> parts;
  while (!words.empty()) {
    const size_t end = std::min(words.find(separator), words.size());
    parts.push_back(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return parts;
}

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

std::optional<bool> parse_bool(std::string_view text) {
  const std::string lower = to_lower(text);
  if (lower == "true" || lower == "1") return true;
  if (lower == "false" || lower == "0") return false;
  return std::nullopt;
}

std::optional<int64_t> parse_int(std::string_view text) {
  return parse_whole<int64_t>(text);
}

std::optional<double> parse_float(std::string_view text) {
  const auto value = parse_whole<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates) {
  const int limit = std::max(1, static_cast<int>(word.size()) / 3);
  const std::string letters = plain(word);
  std::string_view best;
  int best_distance = limit + 1;
  for (const std::string_view candidate : candidates) {
    const bool begins = letters.size() >= 3 && plain(candidate).starts_with(letters);
    const int distance = begins ? 1 : edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

namespace {

// The length of the UTF-8 character at the beginning of `text`, 0 if there is none. Overlong forms
// and surrogates count as characters: a terminal shows a replacement sign for them.
size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const size_t count = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || count > text.size()) return 0;
  for (size_t i = 1; i < count; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
  }
  return count;
}

bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1)
    return (first < 0x20 && first != '\t' && first != '\n') || first == 0x7f;
  if (first == 0xc2) return static_cast<unsigned char>(character[1]) < 0xa0;  // U+0080 to U+009F
  // Marks, embeddings and isolates turn the order of what follows around.
  constexpr std::string_view kBidirectional[] = {"\u061C",
                                                 "\u200E",
                                                 "\u200F",
                                                 "\u202A",
                                                 "\u202B",
                                                 "\u202C",
                                                 "\u202D",
                                                 "\u202E",
                                                 "\u2066",
                                                 "\u2067",
                                                 "\u2068",
                                                 "\u2069"};
  constexpr std::string_view kLineEnds[] = {"\u2028", "\u2029"};
  return std::ranges::count(kBidirectional, character) + std::ranges::count(kLineEnds, character) >
         0;
}

}  // namespace

std::string without_controls(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t bytes = character_bytes(text);
    const std::string_view character = text.substr(0, std::max<size_t>(bytes, 1));
    if (bytes > 0 && !is_control(character)) {
      out += character;
    } else {
      for (const char c : character) {
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      }
    }
    text.remove_prefix(character.size());
  }
  return out;
}

std::string printable(std::string_view text, size_t limit) {
  std::string out;
  for (const char c : text.substr(0, limit)) {
    if (c >= 0x20 && c < 0x7f && c != '\\') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return text.size() > limit ? out + "..." : out;
}

std::string counted(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string size_text(int64_t bytes) {
  constexpr int64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;
  const auto in = [&](int64_t unit) {
    return static_cast<double>(bytes) / static_cast<double>(unit);
  };
  if (bytes < kKiB) return fmt::format("{} B", bytes);
  if (bytes < kMiB) return fmt::format("{:.1f} KiB", in(kKiB));
  if (bytes < kGiB) return fmt::format("{:.1f} MiB", in(kMiB));
  return fmt::format("{:.1f} GiB", in(kGiB));
}

int characters_of(std::string_view text) {
  return static_cast<int>(std::ranges::count_if(text, begins_character));
}

std::string cut_to(std::string_view text, int count) {
  size_t end = 0;
  for (int left = count; end < text.size(); ++end) {
    if (begins_character(text[end]) && left-- <= 0) break;
  }
  return std::string(text.substr(0, end));
}

}  // namespace lockstep
