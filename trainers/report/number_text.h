// Numbers as people read them, and the ticks of an axis.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::trainers {

std::string count_text(int64_t value);  // "12,345"
std::string short_text(double value);   // "950", "1.2k", "3.5M"
// "1,200 steps", "20 steps, of which 3 were skipped"
std::string steps_text(int64_t steps, int64_t skipped);
std::string seconds_text(
    double seconds);                    // "850 µs", "12.3 ms", "4.56 s", "2 min 5 s", "1 h 2 min"
std::string bytes_text(int64_t bytes);  // "113 KiB"
// About four digits, "0.0123", "97.5"; "–" for a value that is not finite.
std::string value_text(double value);

// An axis that holds all values, with ticks at round numbers.
struct Axis {
  double low = 0;
  double high = 1;
  bool logarithmic = false;
  std::vector<double> ticks{};

  // Position of a value, 0 at the low end and 1 at the high end.
  double place(double value) const;
  std::string tick_text(double value) const;
};

// Requires: low <= high, both finite; low > 0 where it is logarithmic.
Axis linear_axis(double low, double high, int ticks);
Axis logarithmic_axis(double low, double high);

}  // namespace lockstep::trainers
