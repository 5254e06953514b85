// Losses of classes share this on the CPU.
// Included by *_cpu.cpp files alone: see cpu_loops.h.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/image/mix_images.h"
#include "kernels/support/cpu/cpu_loops.h"

namespace lockstep::kernels::LS_CPU {

// One image's logits, as floats.
template <class T>
class Logits {
 public:
  explicit Logits(const T* first) : first_(first) {}
  float operator[](int64_t c) const { return static_cast<float>(first_[c]); }

 private:
  const T* first_;
};

// The labels of an image, and how much of it is the first one's.
struct Target {
  int32_t label, other;
  double weight;

  int32_t heavier() const { return weight < 0.5 ? other : label; }
};

inline Target target_of(const Shards& shards, const int32_t* labels, const Tensor& mix, int64_t n) {
  if (!mix.defined()) return {labels[n], labels[n], 1};
  const auto end = std::ranges::upper_bound(shards.offsets, n);
  return {labels[n], labels[partner_of(end[-1], end[0], n)], *mix.data<float>()};
}

template <class T>
int32_t rank_of(Logits<T> x, int64_t classes, int32_t label) {
  int32_t above = 0;
  for (int64_t c = 0; c < classes; ++c) {
    if (std::isnan(x[c])) return static_cast<int32_t>(classes);
    above += x[c] > x[label] || (x[c] == x[label] && c < label);
  }
  return above;
}

inline void write_loss_leaves(const Shards& shards,
                              int64_t divide_by,
                              const Tensor& losses,
                              Tensor& loss_leaves) {
  const float* loss = losses.data<float>();
  float* leaf = loss_leaves.data<float>();
  const auto divisor = static_cast<double>(shards.step_images * divide_by);
  for (int64_t k = 0; k < shards.local(); ++k) {
    double sum = 0;
    for (int64_t n = shards.begin(k); n < shards.begin(k + 1); ++n) sum += loss[n];
    leaf[k] = shards.count(k) == 0 ? 0 : static_cast<float>(sum / divisor);
  }
}

}  // namespace lockstep::kernels::LS_CPU
