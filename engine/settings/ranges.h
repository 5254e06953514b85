// Ranges of options, the same for a Trainer's and the programs'.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace lockstep {

struct NumberRange {  // both ends allowed
  double min = 0;
  double max = 0;
};

namespace ranges {

inline constexpr double kMillion = 1e6;
inline constexpr NumberRange kFrom0{.min = 0, .max = 1e9};
inline constexpr NumberRange kFrom1{.min = 1, .max = 1e9};
inline constexpr NumberRange kUnit{.min = 0, .max = 1};
inline constexpr NumberRange kRates{.min = 0, .max = 1000};
inline constexpr NumberRange kUpToAMillion{.min = 0, .max = kMillion};

}  // namespace ranges

inline constexpr int64_t kMaxEpochs = 1'000'000;

// Less is denormal, or 0, in f32.
inline constexpr double kSmallestNumber = std::numeric_limits<float>::min();
inline bool is_tiny(double number) {
  return number != 0 && std::abs(number) < kSmallestNumber;
}

}  // namespace lockstep
