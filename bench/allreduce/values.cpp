#include "bench/allreduce/values.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include <fmt/core.h>

#include "core/tree.h"

namespace lockstep::bench {
namespace {

// Whole numbers up to this one are exact in T.
template <class T>
constexpr int64_t kExactLimit = 0;
template <>
constexpr int64_t kExactLimit<float> = 1 << 24;
template <>
constexpr int64_t kExactLimit<Half> = 1 << 11;
template <>
constexpr int64_t kExactLimit<BFloat16> = 1 << 8;

// The finalizer of SplitMix64: every bit of the result depends on every bit of the argument.
constexpr uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

constexpr uint64_t random_bits(uint64_t seed, int64_t index, int rank) {
  const uint64_t stream = mix(seed * 0x9e3779b97f4a7c15U + static_cast<uint64_t>(rank) + 1);
  return mix(stream + static_cast<uint64_t>(index) * 0x9e3779b97f4a7c15U);
}

// Small enough for the sum over all ranks to stay within the limit. Where there are more ranks than
// that, the sum of as many -1, 0 and 1 comes nowhere near it.
template <class T>
int64_t exact_value(const Sample& sample, int64_t index, int rank) {
  const int64_t bound = std::max<int64_t>(1, kExactLimit<T> / sample.ranks);
  const uint64_t bits = random_bits(sample.seed, index, rank) >> 32;
  return static_cast<int64_t>((bits * static_cast<uint64_t>(2 * bound + 1)) >> 32) - bound;
}

// A large number swallows the small ones that are added to it before its opposite.
template <class T>
T canceling_value(const Sample& sample, int64_t index, int rank) {
  const uint64_t bits = random_bits(sample.seed, index, rank);
  const float small = static_cast<float>(bits >> 61) / 8;
  const float magnitude = (bits & 1U) != 0 ? static_cast<float>(kExactLimit<T>) : small;
  return T((bits & 2U) != 0 ? magnitude : -magnitude);
}

template <class T>
T value_of(const Sample& sample, int64_t index, int rank) {
  if (sample.pattern == Pattern::kCanceling) return canceling_value<T>(sample, index, rank);
  return T(static_cast<float>(exact_value<T>(sample, index, rank)));
}

template <class T>
T exact_sum(const Sample& sample, int64_t index) {
  int64_t sum = 0;
  for (int rank = 0; rank < sample.ranks; ++rank) sum += exact_value<T>(sample, index, rank);
  return T(static_cast<float>(sum));
}

template <class T>
T tree_sum(const Sample& sample, int64_t index, std::span<T> leaves) {
  for (size_t rank = 0; rank < leaves.size(); ++rank) {
    leaves[rank] = canceling_value<T>(sample, index, static_cast<int>(rank));
  }
  for_each_tree_merge(std::ssize(leaves), [&](int64_t into, int64_t from) {
    T& sum = leaves[static_cast<size_t>(into)];
    sum = T(static_cast<float>(sum) + static_cast<float>(leaves[static_cast<size_t>(from)]));
  });
  return leaves[0];
}

template <class T>
bool same_bytes(const T& a, const T& b) {
  return std::bit_cast<std::array<std::byte, sizeof(T)>>(a) ==
         std::bit_cast<std::array<std::byte, sizeof(T)>>(b);
}

template <class F>
auto with_type(Dtype dtype, F&& body) {
  switch (dtype) {
    case Dtype::kF32:
      return body(float{});
    case Dtype::kF16:
      return body(Half{});
    case Dtype::kBF16:
      return body(BFloat16{});
    default:
      throw DtypeError(fmt::format("[bench] dtype: got {}, expected a float", name_of(dtype)));
  }
}

}  // namespace

void fill_values(Tensor& values, const Sample& sample, int rank) {
  with_type(values.dtype(), [&]<class T>(T) {
    int64_t index = 0;
    for (T& value : values.span<T>()) value = value_of<T>(sample, index++, rank);
  });
}

void fill_ones(Tensor& values) {
  with_type(values.dtype(), [&]<class T>(T) { std::ranges::fill(values.span<T>(), T(1.0F)); });
}

int64_t count_wrong(const Tensor& sums, const Sample& sample) {
  return with_type(sums.dtype(), [&]<class T>(T) {
    std::vector<T> leaves(static_cast<size_t>(sample.ranks));
    int64_t wrong = 0;
    int64_t index = 0;
    for (const T& sum : sums.span<T>()) {
      const T expected = sample.pattern == Pattern::kExact ? exact_sum<T>(sample, index)
                                                           : tree_sum<T>(sample, index, leaves);
      wrong += same_bytes(sum, expected) ? 0 : 1;
      ++index;
    }
    return wrong;
  });
}

}  // namespace lockstep::bench
