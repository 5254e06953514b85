// Elements and indices of tensors as text, for the tools that read checkpoints.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include <fmt/format.h>

#include "core/dtype.h"
#include "core/shape.h"

namespace lockstep::trainers {

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
inline std::string index_text(const Shape& shape, int64_t element) {
  std::string text;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    text = fmt::format("{}{}{}", element % shape[axis], text.empty() ? "" : ",", text);
    element /= shape[axis];
  }
  return "[" + text + "]";
}

}  // namespace lockstep::trainers
