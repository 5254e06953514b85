#include "trainers/report/event_values.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "data/codecs/encode_png.h"
#include "trainers/report/protobuf.h"

namespace lockstep::trainers {
namespace {

namespace pb = protobuf;

// Fields of tensorflow.Summary.Value.
constexpr uint64_t kTag = 1, kSimpleValue = 2, kImage = 4, kHistogram = 5, kTensor = 8,
                   kMetadata = 9;

// For the plugin of TensorBoard that shows the value.
std::string metadata(std::string_view plugin, std::string_view content) {
  constexpr uint64_t kPluginData = 1, kName = 1, kContent = 2;
  std::string data = pb::bytes(kName, plugin);
  if (!content.empty()) data += pb::bytes(kContent, content);
  return pb::bytes(kMetadata, pb::bytes(kPluginData, data));
}

// Bins grow by a tenth from 1e-12 to 1e20, on both sides of 0.
const std::vector<double>& bin_edges() {
  static const std::vector<double> edges = [] {
    std::vector<double> positive;
    double edge = 1e-12;
    while (edge < 1e20) positive.push_back(std::exchange(edge, edge * 1.1));
    std::vector<double> all(positive.rbegin(), positive.rend());
    for (double& negative : all) negative = -negative;
    all.push_back(0);
    all.insert(all.end(), positive.begin(), positive.end());
    return all;
  }();
  return edges;
}

// A bin holds its left edge. Values beyond the last edges count in the outermost bins.
std::vector<double> bin_counts(std::span<const float> values) {
  const std::vector<double>& edges = bin_edges();
  std::vector<double> counts(edges.size() - 1);
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const auto right = std::ranges::upper_bound(edges, static_cast<double>(value));
    const auto bin = std::clamp<ptrdiff_t>(
        right - edges.begin() - 1, 0, static_cast<ptrdiff_t>(counts.size()) - 1);
    ++counts[static_cast<size_t>(bin)];
  }
  return counts;
}

struct Moments {
  double min = INFINITY, max = -INFINITY, count = 0, sum = 0, sum_of_squares = 0;
};

Moments moments_of(std::span<const float> values) {
  Moments moments;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const double x = value;
    moments.min = std::min(moments.min, x);
    moments.max = std::max(moments.max, x);
    moments.count += 1;
    moments.sum += x;
    moments.sum_of_squares += x * x;
  }
  return moments;
}

std::string hparam_value(const std::variant<bool, double, std::string>& value) {
  constexpr uint64_t kNumber = 2, kString = 3, kBool = 4;
  if (const bool* on = std::get_if<bool>(&value)) return pb::whole(kBool, *on ? 1 : 0);
  if (const double* number = std::get_if<double>(&value)) return pb::real(kNumber, *number);
  return pb::bytes(kString, std::get<std::string>(value));
}

double seconds_of(std::chrono::system_clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

std::string session_value(std::string_view tag, uint64_t field, std::string_view session) {
  constexpr uint64_t kVersion = 1;
  return pb::bytes(kTag, tag) +
         metadata("hparams", pb::whole(kVersion, 0) + pb::bytes(field, session));
}

}  // namespace

std::string scalar_value(std::string_view tag, double value) {
  return pb::bytes(kTag, tag) + pb::single(kSimpleValue, static_cast<float>(value));
}

std::string image_value(std::string_view tag, const Picture& picture) {
  constexpr uint64_t kHeight = 1, kWidth = 2, kColorspace = 3, kEncoded = 4;
  const std::string png =
      data::encode_png({picture.height, picture.width}, picture.channels, picture.pixels);
  if (png.empty()) return {};
  const std::string image = pb::whole(kHeight, picture.height) + pb::whole(kWidth, picture.width) +
                            pb::whole(kColorspace, picture.channels) + pb::bytes(kEncoded, png);
  return pb::bytes(kTag, tag) + pb::bytes(kImage, image);
}

std::string histogram_value(std::string_view tag, std::span<const float> values) {
  constexpr uint64_t kMin = 1, kMax = 2, kNum = 3, kSum = 4, kSumSquares = 5, kLimits = 6,
                     kCounts = 7;
  const Moments moments = moments_of(values);
  if (moments.count == 0) return {};
  const std::vector<double> counts = bin_counts(values);
  const auto filled = [](double count) { return count > 0; };
  const auto first = std::ranges::find_if(counts, filled) - counts.begin();
  const auto last = std::find_if(counts.rbegin(), counts.rend(), filled).base() - counts.begin();
  // Limits are right ends: an empty bin in front tells where the first one begins.
  std::vector<double> shown(counts.begin() + first, counts.begin() + last);
  shown.insert(shown.begin(), 0);
  const std::span<const double> limits =
      std::span(bin_edges()).subspan(static_cast<size_t>(first), shown.size());
  const std::string histogram = pb::real(kMin, moments.min) + pb::real(kMax, moments.max) +
                                pb::real(kNum, moments.count) + pb::real(kSum, moments.sum) +
                                pb::real(kSumSquares, moments.sum_of_squares) +
                                pb::reals(kLimits, limits) + pb::reals(kCounts, shown);
  return pb::bytes(kTag, tag) + pb::bytes(kHistogram, histogram);
}

std::string text_value(std::string_view tag, std::string_view text) {
  constexpr uint64_t kType = 1, kShape = 2, kStrings = 8, kDimension = 2, kSize = 1;
  constexpr int64_t kDtString = 7;
  const std::string tensor = pb::whole(kType, kDtString) +
                             pb::bytes(kShape, pb::bytes(kDimension, pb::whole(kSize, 1))) +
                             pb::bytes(kStrings, text);
  return pb::bytes(kTag, std::string(tag) + "/text_summary") + pb::bytes(kTensor, tensor) +
         metadata("text", {});
}

std::string session_start_value(std::span<const HParam> hparams,
                                std::chrono::system_clock::time_point start) {
  constexpr uint64_t kSessionStart = 3, kHParams = 1, kStartTime = 5, kKey = 1, kValue = 2;
  std::string session;
  for (const HParam& hparam : hparams) {
    session += pb::bytes(
        kHParams, pb::bytes(kKey, hparam.name) + pb::bytes(kValue, hparam_value(hparam.value)));
  }
  return session_value("_hparams_/session_start_info",
                       kSessionStart,
                       session + pb::real(kStartTime, seconds_of(start)));
}

std::string session_end_value(std::chrono::system_clock::time_point end) {
  constexpr uint64_t kSessionEnd = 4, kStatus = 1, kEndTime = 2;
  constexpr int64_t kSuccess = 1;
  return session_value(kSessionEndTag,
                       kSessionEnd,
                       pb::whole(kStatus, kSuccess) + pb::real(kEndTime, seconds_of(end)));
}

}  // namespace lockstep::trainers
