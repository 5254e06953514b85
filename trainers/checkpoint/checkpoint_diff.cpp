#include "trainers/checkpoint/checkpoint_diff.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include <fmt/core.h>

#include "core/printable.h"
#include "trainers/checkpoint/checkpoint_text.h"

namespace lockstep::trainers {
namespace {

// Both values; as bits where they print alike (NaNs).
template <class T>
std::string both(const T& a, const T& b) {
  if (value_text(a) != value_text(b)) return fmt::format("{} and {}", value_text(a), value_text(b));
  return fmt::format("{} and {}", bits_text(a), bits_text(b));
}

template <class T>
double distance(const T& a, const T& b) {
  if constexpr (std::is_integral_v<T>) {  // exact where double is not
    const auto [low, high] = std::minmax(a, b);
    return static_cast<double>(static_cast<uint64_t>(high) - static_cast<uint64_t>(low));
  } else {
    return std::abs(as_double(a) - as_double(b));
  }
}

template <class T>
std::string element_difference(const Tensor& a, const Tensor& b) {
  const std::span<const T> left = a.span<T>();
  const std::span<const T> right = b.span<T>();
  int64_t count = 0;
  size_t first = 0;
  double largest = 0;
  for (size_t i = 0; i < left.size(); ++i) {
    if (bits_of(left[i]) == bits_of(right[i])) continue;
    if (count++ == 0) first = i;
    const double difference = distance(left[i], right[i]);
    if (std::isnan(difference) || difference > largest) largest = difference;  // NaN stays
  }
  if (count == 0) return {};
  return fmt::format("{} of {} elements differ, first at {}: {}; max abs diff {:.6g}",
                     count,
                     left.size(),
                     index_text(a.shape(), static_cast<int64_t>(first)),
                     both(left[first], right[first]),
                     largest);
}

// What differs between two tensors of one name; empty if nothing does.
std::string difference(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype()) {
    return fmt::format("dtype {} and {}", name_of(a.dtype()), name_of(b.dtype()));
  }
  if (a.shape() != b.shape()) {
    return fmt::format("shape {} and {}", to_string(a.shape()), to_string(b.shape()));
  }
  return with_element_type(a.dtype(), [&]<class T>(T) { return element_difference<T>(a, b); });
}

// Calls visit(name, value in a or null, value in b or null) for each name in order.
template <class Value, class Visit>
void for_each_name(const std::map<std::string, Value>& a,
                   const std::map<std::string, Value>& b,
                   Visit&& visit) {
  auto left = a.begin();
  auto right = b.begin();
  while (left != a.end() || right != b.end()) {
    const bool in_a = right == b.end() || (left != a.end() && left->first <= right->first);
    const bool in_b = left == a.end() || (right != b.end() && right->first <= left->first);
    visit(in_a ? left->first : right->first,
          in_a ? &left->second : nullptr,
          in_b ? &right->second : nullptr);
    if (in_a) ++left;
    if (in_b) ++right;
  }
}

std::string metadata_value(const std::string* value) {
  return value == nullptr ? "(none)" : "\"" + printable(*value) + "\"";
}

std::string lines(const std::vector<std::string>& all, size_t limit) {
  std::string text;
  for (size_t i = 0; i < std::min(limit, all.size()); ++i) text += "  " + all[i] + "\n";
  if (all.size() > limit) text += fmt::format("  ... and {} more\n", all.size() - limit);
  return text;
}

}  // namespace

CheckpointDiff diff_checkpoints(const Safetensors& a, const Safetensors& b) {
  CheckpointDiff diff;
  for_each_name(
      a.tensors, b.tensors, [&](const std::string& name, const Tensor* left, const Tensor* right) {
        ++diff.tensors;
        const std::string what = left == nullptr    ? "only in the second"
                                 : right == nullptr ? "only in the first"
                                                    : difference(*left, *right);
        if (!what.empty()) diff.differing.push_back(name + ": " + what);
      });
  for_each_name(
      a.metadata,
      b.metadata,
      [&](const std::string& key, const std::string* left, const std::string* right) {
        if (left != nullptr && right != nullptr && *left == *right) return;
        diff.metadata.push_back(fmt::format(
            "{}: {} and {}", printable(key), metadata_value(left), metadata_value(right)));
      });
  return diff;
}

std::string format_diff(const CheckpointDiff& diff, size_t limit) {
  std::string text =
      diff.same() ? fmt::format("same bits in all {} tensors\n", diff.tensors)
                  : fmt::format("{} of {} tensors differ\n", diff.differing.size(), diff.tensors);
  text += lines(diff.differing, limit);
  if (!diff.metadata.empty()) {
    text +=
        fmt::format("metadata differs in {} keys (this does not count)\n", diff.metadata.size());
    text += lines(diff.metadata, limit);
  }
  return text;
}

}  // namespace lockstep::trainers
