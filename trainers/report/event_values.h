// The values that TensorBoard's events hold, each encoded as a tensorflow.Summary.Value with the
// fields that torch.utils.tensorboard gives it.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace lockstep::trainers {

// NaN and infinities are written as they are.
std::string scalar_value(std::string_view tag, double value);

// 8 bits per channel, HWC.
struct Picture {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 1;  // 1 or 3
  std::string pixels = {};
};
// Empty in a build without libpng.
std::string image_value(std::string_view tag, const Picture& picture);

// Counts the values that are finite, in the bins that torch's add_histogram has by default. Empty
// where no value is finite.
std::string histogram_value(std::string_view tag, std::span<const float> values);

// Markdown. Requires: ASCII or UTF-8.
std::string text_value(std::string_view tag, std::string_view text);

// A setting of a run, for TensorBoard's table of runs. Requires: ASCII or UTF-8.
struct HParam {
  std::string name;
  std::variant<bool, double, std::string> value;
};
std::string session_start_value(std::span<const HParam> hparams,
                                std::chrono::system_clock::time_point start);
// The session reached its end.
std::string session_end_value(std::chrono::system_clock::time_point end);
inline constexpr std::string_view kSessionEndTag = "_hparams_/session_end_info";

}  // namespace lockstep::trainers
