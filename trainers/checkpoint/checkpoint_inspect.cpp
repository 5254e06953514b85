#include "trainers/checkpoint/checkpoint_inspect.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "core/digest.h"
#include "core/printable.h"
#include "trainers/checkpoint/checkpoint_text.h"

namespace lockstep::trainers {
namespace {

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

}  // namespace lockstep::trainers
