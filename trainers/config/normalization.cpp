#include "trainers/config/normalization.h"

#include <charconv>
#include <cmath>
#include <vector>

#include <fmt/ranges.h>

#include "core/error.h"
#include "core/words.h"
#include "engine/settings/usual_images.h"

namespace lockstep::trainers {
namespace {

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw UsageError(fmt::format("bad value: --normalize {}", text),
                   why,
                   "--normalize dataset, none, 0.1307,0.3081 or "
                   "0.485,0.456,0.406,0.229,0.224,0.225");
}

// Not by way of double: its rounding could lead to another float.
std::optional<float> parse_finite(std::string_view text) {
  float value = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc{} || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

kernels::NormalizeImageParams for_channels(const kernels::NormalizeImageParams& params,
                                           const data::Dataset& dataset) {
  const auto channels = static_cast<size_t>(dataset.image_shape().channels);
  if (params.mean.empty() || params.mean.size() == channels) return params;
  if (params.mean.size() == 1) {
    return {.mean = std::vector(channels, params.mean[0]),
            .std = std::vector(channels, params.std[0])};
  }
  throw UsageError(
      fmt::format("--normalize has {} means", params.mean.size()),
      fmt::format("the images of {} have {}", dataset.name(), counted(channels, "channel")),
      "--normalize MEAN,STD, which is for every channel");
}

}  // namespace

std::string normalize_text(const kernels::NormalizeImageParams& params) {
  if (params.mean.empty()) return "none";
  return fmt::format("{},{}", fmt::join(params.mean, ","), fmt::join(params.std, ","));
}

std::optional<kernels::NormalizeImageParams> parse_normalize(const std::string& text) {
  if (text == "dataset") return std::nullopt;
  if (text == "none") return kernels::NormalizeImageParams{};
  std::vector<float> numbers;
  for (const std::string_view word : split_words(text, ',')) {
    const std::optional<float> number = parse_finite(word);
    if (!number) refuse(text, fmt::format("'{}' is not a finite 32-bit number", word));
    numbers.push_back(*number);
  }
  if (numbers.size() != 2 && numbers.size() != 6) {
    refuse(text, "it takes a mean and a deviation, or three means and then three deviations");
  }
  const auto middle = numbers.begin() + std::ssize(numbers) / 2;
  kernels::NormalizeImageParams params{.mean = {numbers.begin(), middle},
                                       .std = {middle, numbers.end()}};
  for (const float deviation : params.std) {
    if (!(deviation > 0)) refuse(text, "pixels are divided by deviations: each is above 0");
  }
  return params;
}

kernels::NormalizeImageParams normalization(
    const std::optional<kernels::NormalizeImageParams>& asked, const data::Dataset& dataset) {
  return asked ? for_channels(*asked, dataset) : usual_normalization(dataset);
}

}  // namespace lockstep::trainers
