// Which sizes are measured, and what a time says about bandwidth. Source: nccl-tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace lockstep::bench {

// "32", "4K", "1.5m", "1G": powers of 1024 in either case. Nothing for other text, negative numbers
// and what no int64_t holds.
std::optional<int64_t> parse_size(std::string_view text);

struct SizeRange {
  int64_t min_bytes = int64_t{32} << 20;
  int64_t max_bytes = int64_t{32} << 20;
  int64_t step_bytes = int64_t{1} << 20;
  int64_t step_factor = 1;  // above 1 it takes the place of step_bytes
};

// From min_bytes on, none above max_bytes. Zero times a factor stays zero and is listed once.
std::vector<int64_t> sizes_of(const SizeRange& range);

// Bytes that pass through a rank's link for each byte that is all-reduced.
constexpr double bus_factor(int ranks) {
  return 2.0 * (ranks - 1) / ranks;
}

// 1e9 bytes a second; 0 for no time at all.
constexpr double gigabytes_per_second(int64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / seconds / 1e9 : 0;
}

}  // namespace lockstep::bench
