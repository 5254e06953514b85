#include "inspect/weights/checkpoint_reports.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <type_traits>

#include <fmt/core.h>
#include <fmt/format.h>

#include "core/digest.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/words.h"

namespace lockstep::trainers {
namespace {

// Returns call(T{}) with the element type of `dtype`.
template <class Call>
auto with_element_type(Dtype dtype, Call&& call) {
  switch (dtype) {
    case Dtype::kF32:
      return call(float{});
    case Dtype::kF16:
      return call(Half{});
    case Dtype::kBF16:
      return call(BFloat16{});
    case Dtype::kU8:
      return call(uint8_t{});
    case Dtype::kI32:
      return call(int32_t{});
    case Dtype::kI64:
      break;
  }
  return call(int64_t{});
}

template <class T>
double as_double(const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(value);
  } else {
    return static_cast<double>(static_cast<float>(value));
  }
}

// The shortest text that reads back as the same value.
template <class T>
std::string value_text(const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return fmt::format("{}", value);
  } else {
    return fmt::format("{}", static_cast<float>(value));
  }
}

template <class T>
uint64_t bits_of(const T& value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

// "0x7fc00000"
template <class T>
std::string bits_text(const T& value) {
  return fmt::format("{:#0{}x}", bits_of(value), 2 + 2 * sizeof(T));
}

// The place of row-major element `element`: "[2,0,1]", "[]" in rank 0.
std::string index_text(const Shape& shape, int64_t element) {
  std::string text;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    text = fmt::format("{}{}{}", element % shape[axis], text.empty() ? "" : ",", text);
    element /= shape[axis];
  }
  return "[" + text + "]";
}

template <class T>
TensorStatistics statistics_of(std::span<const T> elements) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  TensorStatistics result{.min = kInfinity, .max = -kInfinity};
  double sum = 0;
  int64_t finite = 0;
  for (const T& element : elements) {
    const double value = as_double(element);
    if (!std::isfinite(value)) continue;
    ++finite;
    sum += value;
    result.min = std::min(result.min, value);
    result.max = std::max(result.max, value);
  }
  const int64_t nonfinite = static_cast<int64_t>(elements.size()) - finite;
  if (finite == 0) return {.nonfinite = nonfinite};
  result.mean = sum / static_cast<double>(finite);
  result.nonfinite = nonfinite;
  return result;
}

std::string row(const std::string& name, const Tensor& tensor, size_t name_width) {
  const TensorStatistics numbers = statistics(tensor);
  return fmt::format("{:{}}  {:5}  {:18}  {:>12.5g}  {:>12.5g}  {:>12.5g}  {:>9}  {}\n",
                     name,
                     name_width,
                     name_of(tensor.dtype()),
                     to_string(tensor.shape()),
                     numbers.min,
                     numbers.max,
                     numbers.mean,
                     numbers.nonfinite,
                     to_hex(digest_of(tensor)));
}

}  // namespace

TensorStatistics statistics(const Tensor& tensor) {
  return with_element_type(tensor.dtype(),
                           [&]<class T>(T) { return statistics_of(tensor.span<T>()); });
}

std::string inspect_checkpoint(const Safetensors& content) {
  size_t name_width = 4;
  for (const auto& [name, tensor] : content.tensors) {
    name_width = std::max(name_width, name.size());
  }
  std::string text = fmt::format("{:{}}  {:5}  {:18}  {:>12}  {:>12}  {:>12}  {:>9}  {}\n",
                                 "name",
                                 name_width,
                                 "dtype",
                                 "shape",
                                 "min",
                                 "max",
                                 "mean",
                                 "nonfinite",
                                 "digest");
  std::map<std::string, Tensor> tensors;
  int64_t elements = 0;
  size_t bytes = 0;
  for (const auto& [name, in_file] : content.tensors) {
    const Tensor& tensor = tensors[name] = from_row_major(in_file);
    text += row(name, tensor, name_width);
    elements += tensor.numel();
    bytes += tensor.nbytes();
  }
  text += fmt::format("{} tensors, {} elements, {} bytes, digest {}\n",
                      tensors.size(),
                      elements,
                      bytes,
                      to_hex(digest_of(tensors)));
  for (const auto& [key, value] : content.metadata) {
    text += fmt::format("metadata  {} = {}\n", printable(key), printable(value, 1000));
  }
  return text;
}

namespace {

// Prints both values; as bits where they print alike, as NaNs do.
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

// Describes the difference between two tensors of one name; empty if there is none.
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
  const auto find = [](const std::map<std::string, Value>& in, const std::string& name) {
    const auto found = in.find(name);
    return found == in.end() ? nullptr : &found->second;
  };
  std::set<std::string> names;
  for (const auto* map : {&a, &b}) {
    for (const auto& [name, value] : *map) names.insert(name);
  }
  for (const std::string& name : names) visit(name, find(a, name), find(b, name));
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
