// Weights of a resized axis: triangles as wide as the scale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::data {

// One side of an image: `extent` of its `in` pixels, after the first `skip` of them.
struct Axis {
  int64_t in = 0;
  double skip = 0;
  double extent = 0;
};

class ResampleWeights {
 public:
  static constexpr int kFractionBits = 22;  // weights are whole numbers of 2^-22, none negative

  // Weights of the results [first, first + count) of the axis resized to `out`.
  ResampleWeights(const Axis& axis, int64_t out, int64_t first, int64_t count);

  struct Part {
    int64_t begin = 0;
    int64_t count = 0;
    int64_t end() const { return begin + count; }
  };

  int64_t size() const { return static_cast<int64_t>(parts_.size()); }
  const Part& part(int64_t i) const { return parts_[static_cast<size_t>(i)]; }
  const int32_t* of(int64_t i) const { return weights_.data() + static_cast<size_t>(i) * pitch_; }
  Part all() const { return {parts_.front().begin, parts_.back().end() - parts_.front().begin}; }

 private:
  size_t pitch_ = 0;
  std::vector<Part> parts_;
  std::vector<int32_t> weights_;
};

}  // namespace lockstep::data
