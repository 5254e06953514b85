#include "data/resample_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "core/error.h"
#include "core/round_up.h"

namespace lockstep::data {
namespace {

// Rounds to nearest, halves up.
int64_t nearest(double x) {
  return static_cast<int64_t>(std::floor(x + 0.5));
}

// The value of the interpolation kernel at distance `x` >= 0, in units of its scale.
double height_at(double x, Interpolation by) {
  if (by == Interpolation::kBilinear) return std::max(1 - x, 0.0);
  // Keys's cubic convolution with a = -1/2, term by term as Pillow's.
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * -0.5 : 0;
}

constexpr int kFractionBits = ResampleWeights::kFractionBits;
constexpr int32_t kHalf = 1 << (kFractionBits - 1);

// AVX2 multiplies 16-bit integers and adds adjacent products. So a weight is split into two halves,
// and the pixels of a group are shuffled so that a color's values of two pixels are adjacent. A
// weight is 2^15 high + low with 0 <= low < 2^15, so a negative weight has a negative high half.
// Sums of low halves may wrap around: the total is correct modulo 2^32, and a result's sum fits in
// 32 bits.
constexpr int64_t kGroup = 4;
constexpr int kLowBits = 15;
constexpr int64_t kHalves = 16;  // low halves of a group; as many high halves follow

uint8_t rounded(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kFractionBits, 0, 255));
}

using Lanes [[gnu::vector_size(16)]] = int32_t;  // red, green, blue and nothing
using Bytes [[gnu::vector_size(4)]] = uint8_t;

Lanes pixel_at(const uint8_t* from) {
  uint16_t red_green = 0;
  std::memcpy(&red_green, from, sizeof(red_green));
  const uint32_t pixel = red_green | static_cast<uint32_t>(from[2]) << 16;
  return __builtin_convertvector(std::bit_cast<Bytes>(pixel), Lanes);
}

inline void put_bytes(uint32_t pixel, uint8_t* to) {
  const auto red_green = static_cast<uint16_t>(pixel);
  std::memcpy(to, &red_green, sizeof(red_green));
  to[2] = static_cast<uint8_t>(pixel >> 16);
}

// Writes what rounded() gives for each of three channels.
void put_pixel(const Lanes& sum, uint8_t* to) {
  Lanes value = sum >> kFractionBits;
  value = value < 0 ? 0 : value;
  value = value > 255 ? 255 : value;
  put_bytes(std::bit_cast<uint32_t>(__builtin_convertvector(value, Bytes)), to);
}

// Resizes one row of the image to the window's columns. `from` points at the box's column 0.
void resize_row_any(const ResampleWeights& columns, const uint8_t* from, bool flip, uint8_t* to) {
  const int64_t step = flip ? -3 : 3;
  if (flip) to += (columns.size() - 1) * 3;
  for (int64_t i = 0; i < columns.size(); ++i, to += step) {
    const ResampleWeights::Part& part = columns.part(i);
    const int32_t* const weights = columns.of(i);
    const uint8_t* pixel = from + part.begin * 3;
    Lanes sum = {kHalf, kHalf, kHalf, kHalf};
    for (int64_t k = 0; k < part.count; ++k, pixel += 3) sum += pixel_at(pixel) * weights[k];
    put_pixel(sum, to);
  }
}

// A weighted sum of rows of `bytes` each.
[[gnu::always_inline]] inline void mix_rows_body(
    const uint8_t* from, int64_t bytes, int64_t rows, const int32_t* weights, uint8_t* to) {
  constexpr int64_t kBlock = 32;
  for (int64_t first = 0; first < bytes; first += kBlock) {
    const int64_t begin = std::max<int64_t>(std::min(first, bytes - kBlock), 0);
    const int64_t count = std::min(kBlock, bytes);
    std::array<int32_t, kBlock> sums{};
    sums.fill(kHalf);
    if (count == kBlock) {
      for (int64_t k = 0; k < rows; ++k) {
        const uint8_t* const row = from + k * bytes + begin;
        for (size_t i = 0; i < kBlock; ++i) sums[i] += weights[k] * row[i];
      }
      for (size_t i = 0; i < kBlock; ++i) to[static_cast<size_t>(begin) + i] = rounded(sums[i]);
      continue;
    }
    for (int64_t k = 0; k < rows; ++k) {
      const uint8_t* const row = from + k * bytes;
      for (size_t i = 0; i < static_cast<size_t>(count); ++i) sums[i] += weights[k] * row[i];
    }
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) to[i] = rounded(sums[i]);
  }
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] inline __m256i load(const int16_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
// Shuffle indices that make 16-bit values: red, green and blue, each of two adjacent pixels; -1
// gives zero.
alignas(32) constexpr int8_t kPairs[32] = {
    0, -1, 3, -1, 1, -1, 4,  -1, 2, -1, 5,  -1, -1, -1, -1, -1,  //
    6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1};
[[gnu::target("avx2")]] void resize_row_avx2(const ResampleWeights& columns,
                                             const int16_t* halves,
                                             int64_t groups,
                                             const uint8_t* from,
                                             bool flip,
                                             uint8_t* to) {
  const __m256i pairs = _mm256_load_si256(reinterpret_cast<const __m256i*>(kPairs));
  const __m128i half = _mm_set1_epi32(kHalf);
  const int64_t step = flip ? -3 : 3;
  const int64_t count = columns.size();
  if (flip) to += (count - 1) * 3;
  const ResampleWeights::Part* part = &columns.part(0);
  for (int64_t i = 0; i < count; ++i, ++part, to += step) {
    const uint8_t* pixel = from + part->begin * 3;
    __m256i low = _mm256_setzero_si256();
    __m256i high = _mm256_setzero_si256();
    for (int64_t k = 0; k < groups; ++k, pixel += kGroup * 3, halves += 2 * kHalves) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(pixel));
      const __m256i values = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), pairs);
      low = _mm256_add_epi32(low, _mm256_madd_epi16(values, load(halves)));
      high = _mm256_add_epi32(high, _mm256_madd_epi16(values, load(halves + kHalves)));
    }
    const __m256i both = _mm256_add_epi32(low, _mm256_slli_epi32(high, kLowBits));
    const __m128i sum =
        _mm_add_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
    const __m128i value = _mm_srai_epi32(_mm_add_epi32(sum, half), kFractionBits);
    const __m128i in_16_bits = _mm_packs_epi32(value, value);
    put_bytes(static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_packus_epi16(in_16_bits, in_16_bits))),
              to);
  }
}
[[gnu::target("avx2")]] void mix_rows_avx2(
    const uint8_t* from, int64_t bytes, int64_t rows, const int32_t* weights, uint8_t* to) {
  mix_rows_body(from, bytes, rows, weights, to);
}
bool has_avx2() {
  return __builtin_cpu_supports("avx2") != 0;
}
#else
void resize_row_avx2(
    const ResampleWeights&, const int16_t*, int64_t, const uint8_t*, bool, uint8_t*) {
  throw InternalError("[resample] this processor has no AVX2");
}
void mix_rows_avx2(const uint8_t*, int64_t, int64_t, const int32_t*, uint8_t*) {
  throw InternalError("[resample] this processor has no AVX2");
}
bool has_avx2() {
  return false;
}
#endif

}  // namespace

ResampleWeights::ResampleWeights(
    const Axis& axis, int64_t out, int64_t first, int64_t count, Interpolation by) {
  const double scale = axis.extent / static_cast<double>(out);
  const double unit = std::max(scale, 1.0);
  const double support = by == Interpolation::kBicubic ? 2 * unit : unit;  // half the curve's width
  pitch_ = static_cast<size_t>(2 * static_cast<int64_t>(std::ceil(support)) + 1);
  parts_.reserve(static_cast<size_t>(count));
  weights_.resize(static_cast<size_t>(count) * pitch_);
  std::vector<double> exact(pitch_);
  for (int64_t i = 0; i < count; ++i) {
    const double center = axis.skip + (static_cast<double>(first + i) + 0.5) * scale;
    const auto begin = std::max<int64_t>(nearest(center - support), 0);
    const auto end = std::min<int64_t>(nearest(center + support), axis.in);
    double sum = 0;
    for (int64_t x = begin; x < end; ++x) {
      const double distance = std::abs((static_cast<double>(x) - center + 0.5) * (1 / unit));
      sum += exact[static_cast<size_t>(x - begin)] = height_at(distance, by);
    }
    for (int64_t k = 0; k < end - begin; ++k) {
      const double weight = exact[static_cast<size_t>(k)] / sum * (1 << kFractionBits);
      weights_[static_cast<size_t>(i) * pitch_ + static_cast<size_t>(k)] =
          static_cast<int32_t>(weight < 0 ? -nearest(-weight) : nearest(weight));
    }
    parts_.push_back({begin, end - begin});
  }
}

RowCode best_row_code() {
  static const RowCode best = has_avx2() ? RowCode::kAvx2 : RowCode::kAny;
  return best;
}

RowResizer::RowResizer(const ResampleWeights& columns, RowCode code) : columns_(columns) {
  if (code != RowCode::kAvx2) return;
  int64_t most = 0;
  for (int64_t i = 0; i < columns.size(); ++i) most = std::max(most, columns.part(i).count);
  groups_ = ceil_div(most, kGroup);
  constexpr int64_t kLoad = 16;  // bytes that are loaded, of which a group uses 12
  reach_ = (columns.part(columns.size() - 1).begin + (groups_ - 1) * kGroup) * 3 + kLoad;
  halves_.resize(static_cast<size_t>(columns.size() * groups_ * 2 * kHalves));
  for (int64_t i = 0; i < columns.size(); ++i) {
    int16_t* const column = halves_.data() + i * groups_ * 2 * kHalves;
    for (int64_t k = 0; k < columns.part(i).count; ++k) {
      const int32_t weight = columns.of(i)[k];
      int16_t* const low =
          column + k / kGroup * 2 * kHalves + k % kGroup / 2 * (kHalves / 2) + k % 2;
      for (int64_t color = 0; color < 3; ++color) {
        low[2 * color] = static_cast<int16_t>(weight & ((1 << kLowBits) - 1));
        low[2 * color + kHalves] = static_cast<int16_t>(weight >> kLowBits);
      }
    }
  }
}

void RowResizer::resize(const uint8_t* from, const uint8_t* end, bool flip, uint8_t* to) const {
  if (groups_ > 0 && reach_ <= end - from) {
    resize_row_avx2(columns_, halves_.data(), groups_, from, flip, to);
  } else {
    resize_row_any(columns_, from, flip, to);
  }
}

void mix_rows(
    const uint8_t* from, int64_t bytes, int64_t rows, const int32_t* weights, uint8_t* to) {
  if (best_row_code() == RowCode::kAvx2) {
    mix_rows_avx2(from, bytes, rows, weights, to);
  } else {
    mix_rows_body(from, bytes, rows, weights, to);
  }
}

}  // namespace lockstep::data
