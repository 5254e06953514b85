#include "core/shape.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "core/error.h"

namespace lockstep {

Shape::Shape(std::initializer_list<int64_t> extents)
    : Shape(std::span<const int64_t>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const int64_t> extents) : rank_(static_cast<int>(extents.size())) {
  if (extents.size() > kMaxRank) {
    throw ShapeError(fmt::format("[shape] rank: got {}, expected at most {}", rank_, kMaxRank));
  }
  int64_t numel = 1;
  for (const int64_t extent : extents) {
    if (extent < 0 || __builtin_mul_overflow(numel, extent, &numel)) {
      throw ShapeError(fmt::format("[shape] extents: got ({})", fmt::join(extents, ",")),
                       "an extent is negative or their product overflows 64 bits");
    }
  }
  std::copy(extents.begin(), extents.end(), extents_.begin());
}

int64_t Shape::numel() const {
  int64_t product = 1;
  for (int axis = 0; axis < rank_; ++axis) product *= (*this)[axis];
  return product;
}

int64_t Shape::stride0() const {
  int64_t product = 1;
  for (int axis = 1; axis < rank_; ++axis) product *= (*this)[axis];
  return product;
}

std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (int axis = 0; axis < shape.rank(); ++axis) {
    text += (axis == 0 ? "" : ",") + std::to_string(shape[axis]);
  }
  return text + ")";
}

}  // namespace lockstep
