#include "bench/allreduce/sizes.h"

#include <charconv>
#include <limits>

namespace lockstep::bench {
namespace {

std::optional<double> unit_of(std::string_view suffix) {
  if (suffix.empty()) return 1;
  if (suffix == "K" || suffix == "k") return 0x1p10;
  if (suffix == "M" || suffix == "m") return 0x1p20;
  if (suffix == "G" || suffix == "g") return 0x1p30;
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> parse_size(std::string_view text) {
  double number = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, number, std::chars_format::fixed);
  const auto unit = unit_of({stop, static_cast<size_t>(end - stop)});
  if (error != std::errc{} || !unit) return std::nullopt;
  const double bytes = number * *unit;
  if (!(bytes >= 0 && bytes < 0x1p63)) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

std::vector<int64_t> sizes_of(const SizeRange& range) {
  constexpr int64_t kLimit = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> sizes;
  for (int64_t size = range.min_bytes; size <= range.max_bytes;) {
    sizes.push_back(size);
    const bool multiply = range.step_factor > 1;
    if (multiply && size > kLimit / range.step_factor) break;
    if (!multiply && size > kLimit - range.step_bytes) break;
    const int64_t next = multiply ? size * range.step_factor : size + range.step_bytes;
    if (next == size) break;
    size = next;
  }
  return sizes;
}

}  // namespace lockstep::bench
