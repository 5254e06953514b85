// Counts in JSON text that comes from a file.
#pragma once

#include <cstdint>
#include <optional>

namespace lockstep::trainers {

inline constexpr int64_t kMaxCounted = int64_t{1} << 53;  // beyond, doubles skip whole numbers

// Returns a whole number from 0 to `max`; nothing for another number, text or true. nlohmann's own
// get<int64_t>() casts any number, which is undefined for large ones.
template <class Json>
std::optional<int64_t> json_count(const Json& json, int64_t max = kMaxCounted) {
  if (!json.is_number_unsigned()) {  // a number from 0 on, without a point
    const bool whole = json.is_number_integer() && json.template get<int64_t>() >= 0;
    if (!whole) return std::nullopt;
  }
  const auto count = json.template get<uint64_t>();
  if (count > static_cast<uint64_t>(max)) return std::nullopt;
  return static_cast<int64_t>(count);
}

}  // namespace lockstep::trainers
