// Sixteen elements of a float type in registers, as floats.
// Included by *_cpu.cpp files alone: see cpu_loops.h.
#pragma once

#include "core/dtype.h"
#include "kernels/float_tile.h"

#if LS_ISA >= 3
#include <immintrin.h>
#endif

namespace lockstep::kernels::LS_CPU {

// A cache line of f32, so that no line is visited twice where rows collide in the cache.
inline constexpr int64_t kLineLanes = 16;
using Line = FloatTile<kLineLanes>;

template <class T>
[[gnu::always_inline]] inline Line load_line(const T* from) {
  float lanes[kLineLanes];
  for (int64_t i = 0; i < kLineLanes; ++i) lanes[i] = static_cast<float>(from[i]);
  return Line::load(lanes);
}
template <>
[[gnu::always_inline]] inline Line load_line(const float* from) {
  return Line::load(from);
}

// Rounds to T.
template <class T>
[[gnu::always_inline]] inline void store_line(const Line& line, T* to) {
  float lanes[kLineLanes];
  line.store(lanes);
  for (int64_t i = 0; i < kLineLanes; ++i) to[i] = T(lanes[i]);
}
template <>
[[gnu::always_inline]] inline void store_line(const Line& line, float* to) {
  line.store(to);
}

#if LS_ISA >= 3
// The processor's conversions give Half's bits; plain code would not be vectorised.
template <>
[[gnu::always_inline]] inline Line load_line(const Half* from) {
  return Line::make([=](int64_t i) {
#if LS_ISA == 4
    const __m256i lanes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from) + i);
    return Line::Vector(_mm512_maskz_cvtph_ps(0xffff, lanes));
#else
    const __m128i lanes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + i);
    return Line::Vector(_mm256_cvtph_ps(lanes));
#endif
  });
}

template <>
[[gnu::always_inline]] inline void store_line(const Line& line, Half* to) {
  for (int64_t i = 0; i < Line::kVectors; ++i) {
#if LS_ISA == 4
    const __m256i lanes =
        _mm512_maskz_cvtps_ph(0xffff, __m512(line.parts[i]), _MM_FROUND_TO_NEAREST_INT);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to) + i, lanes);
#else
    const __m128i lanes = _mm256_cvtps_ph(__m256(line.parts[i]), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to) + i, lanes);
#endif
  }
}
#endif

// BFloat16's conversions on vectors.
using LineWords [[gnu::vector_size(Line::kVectorLanes * 4)]] = uint32_t;
using LineHalves [[gnu::vector_size(Line::kVectorLanes * 2)]] = uint16_t;

template <>
[[gnu::always_inline]] inline Line load_line(const BFloat16* from) {
  return Line::make([=](int64_t i) {
    LineHalves lanes;
    std::memcpy(&lanes, from + i * Line::kVectorLanes, sizeof(lanes));
    return Line::Vector(__builtin_convertvector(lanes, LineWords) << 16);
  });
}

// The upper halves of the words are the rounded values; the lower halves are left.
[[gnu::always_inline]] inline LineWords rounded_words(Line::Vector vector) {
  const auto words = LineWords(vector);
  return vector != vector ? words | 0x400000U : words + 0x7fffU + ((words >> 16) & 1U);
}

template <>
[[gnu::always_inline]] inline void store_line(const Line& line, BFloat16* to) {
  for (int64_t i = 0; i < Line::kVectors; ++i) {
    const auto lanes = __builtin_convertvector(rounded_words(line.parts[i]) >> 16, LineHalves);
    std::memcpy(&to[i * Line::kVectorLanes].bits, &lanes, sizeof(lanes));
  }
}

// The values that T can hold.
template <class T>
[[gnu::always_inline]] inline Line rounded(const Line& line) {
  T lanes[kLineLanes];
  store_line(line, lanes);
  return load_line(lanes);
}
template <>
[[gnu::always_inline]] inline Line rounded<float>(const Line& line) {
  return line;
}
template <>
[[gnu::always_inline]] inline Line rounded<BFloat16>(const Line& line) {
  return Line::make(
      [&](int64_t i) { return Line::Vector(rounded_words(line.parts[i]) & 0xffff0000U); });
}
template <class T>
[[gnu::always_inline]] inline float rounded(float value) {
  return static_cast<float>(T(value));
}

}  // namespace lockstep::kernels::LS_CPU
