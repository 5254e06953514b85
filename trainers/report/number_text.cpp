#include "trainers/report/number_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

namespace lockstep::trainers {
namespace {

// "1.2", and "12" rather than "12.0".
std::string trimmed(double value, int decimals) {
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (decimals == 0) return text;
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

// Digits after the decimal point so that about `digits` digits are shown.
int decimals_for(double value, int digits) {
  if (value == 0) return 0;
  const auto magnitude = static_cast<int>(std::floor(std::log10(std::abs(value))));
  return std::clamp(digits - 1 - magnitude, 0, 12);
}

// The largest of 1, 2 and 5 times a power of ten that is at least `step`.
double round_step(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= step * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

}  // namespace

std::string count_text(int64_t value) {
  std::string text = std::to_string(value);
  const std::ptrdiff_t first = value < 0 ? 1 : 0;
  for (auto at = std::ssize(text) - 3; at > first; at -= 3)
    text.insert(static_cast<size_t>(at), ",");
  return text;
}

std::string steps_text(int64_t steps, int64_t skipped) {
  std::string text = fmt::format("{} step{}", count_text(steps), steps == 1 ? "" : "s");
  if (skipped == 0) return text;
  return text + fmt::format(
                    ", of which {} {} skipped", count_text(skipped), skipped == 1 ? "was" : "were");
}

std::string short_text(double value) {
  constexpr struct {
    double size;
    const char* name;
  } kUnits[] = {{1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
  for (const auto& unit : kUnits) {
    if (std::abs(value) < unit.size) continue;
    const double scaled = value / unit.size;
    return trimmed(scaled, decimals_for(scaled, 3)) + unit.name;
  }
  return trimmed(value, decimals_for(value, 3));
}

std::string seconds_text(double seconds) {
  if (!std::isfinite(seconds)) return "–";
  if (seconds == 0) return "0 s";
  const auto with = [](double value, const char* unit) {
    return fmt::format("{} {}", trimmed(value, decimals_for(value, 3)), unit);
  };
  if (seconds < 1e-3) return with(seconds * 1e6, "µs");
  if (seconds < 1) return with(seconds * 1e3, "ms");
  if (seconds < 60) return with(seconds, "s");
  const auto whole = std::llround(seconds);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string bytes_text(int64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return fmt::format("{} {}", trimmed(value, decimals_for(value, 3)), kUnits[unit]);
}

std::string value_text(double value) {
  if (!std::isfinite(value)) return "–";
  const double size = std::abs(value);
  if (size != 0 && (size < 1e-4 || size >= 1e7)) return fmt::format("{:.3g}", value);
  return trimmed(value, decimals_for(value, 4));
}

double Axis::place(double value) const {
  if (logarithmic) return (std::log(value) - std::log(low)) / (std::log(high) - std::log(low));
  return (value - low) / (high - low);
}

std::string Axis::tick_text(double value) const {
  if (std::abs(value) >= 1000) return short_text(value);
  const double step = ticks.size() < 2 ? value : ticks[1] - ticks[0];
  return trimmed(value, logarithmic ? decimals_for(value, 1) : decimals_for(step, 1));
}

Axis linear_axis(double low, double high, int ticks) {
  if (high - low <= 1e-12 * std::max(std::abs(low), std::abs(high))) {
    const double half = low == 0 ? 1 : std::abs(low) / 10;
    low -= half;
    high += half;
  }
  const double step = round_step((high - low) / ticks);
  Axis axis{.low = std::floor(low / step + 1e-9) * step,
            .high = std::ceil(high / step - 1e-9) * step};
  const auto count = std::llround((axis.high - axis.low) / step);
  for (int64_t i = 0; i <= count; ++i)
    axis.ticks.push_back(axis.low + static_cast<double>(i) * step);
  return axis;
}

Axis logarithmic_axis(double low, double high) {
  Axis axis{.low = low, .high = std::max(high, low * 1.1), .logarithmic = true};
  const bool is_wide = high / low > 100;
  for (int power = -12; power <= 12; ++power) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = factor * std::pow(10, power);
      if (tick >= low && tick <= axis.high && (factor == 1 || !is_wide)) axis.ticks.push_back(tick);
    }
  }
  return axis;
}

}  // namespace lockstep::trainers
