// Extents of a tensor.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#pragma GCC visibility push(default)
namespace lockstep {

// Up to 4 extents, each >= 0. A rank-4 shape is named (N,C,H,W), or (K,C,R,S) for weights, and
// stored channels-last: NHWC, KRSC. Every other rank is stored row-major.
class Shape {
 public:
  static constexpr int kMaxRank = 4;

  Shape() = default;  // rank 0: one element
  // Errors: ShapeError for more than kMaxRank extents, a negative one, or too many elements for 64
  // bits.
  Shape(std::initializer_list<int64_t> extents);
  explicit Shape(std::span<const int64_t> extents);

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return extents_[static_cast<size_t>(axis)]; }
  int64_t numel() const;
  // Elements of one slice along axis 0; 1 for rank 0.
  int64_t stride0() const;

  bool operator==(const Shape& other) const = default;

 private:
  std::array<int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

std::string to_string(const Shape& shape);  // "(8,64,28,28)"

}  // namespace lockstep
#pragma GCC visibility pop
