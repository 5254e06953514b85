// Sixteen elements of a float type in registers, as floats; converted as core/dtype.h does it.
// Included by *_cpu.cpp files alone: see cpu_loops.h.
#pragma once

#include <algorithm>
#include <cstring>

#include "core/dtype.h"
#include "kernels/float_tile.h"

#if LS_ISA >= 3
#include <immintrin.h>
#endif

namespace lockstep::kernels::LS_CPU {

// A cache line of f32, so that no line is visited twice where rows collide in the cache.
inline constexpr int64_t kLineLanes = 16;
using Line = FloatTile<kLineLanes>;

using LineWords [[gnu::vector_size(Line::kVectorLanes * 4)]] = uint32_t;
using LineHalves [[gnu::vector_size(Line::kVectorLanes * 2)]] = uint16_t;

[[gnu::always_inline]] inline LineHalves load_halves(const uint16_t* from) {
  LineHalves halves;
  std::memcpy(&halves, from, sizeof(halves));
  return halves;
}
[[gnu::always_inline]] inline void store_halves(LineHalves halves, uint16_t* to) {
  std::memcpy(to, &halves, sizeof(halves));
}

[[gnu::always_inline]] inline LineWords widened(LineHalves halves) {
  return __builtin_convertvector(halves, LineWords);
}
[[gnu::always_inline]] inline LineHalves narrowed(LineWords words) {
  return __builtin_convertvector(words, LineHalves);
}

#if LS_ISA == 4
[[gnu::always_inline]] inline Line::Vector from_f16(LineHalves halves) {
  return Line::Vector(_mm512_maskz_cvtph_ps(0xffff, __m256i(halves)));
}
[[gnu::always_inline]] inline LineHalves to_f16(Line::Vector vector) {
  return LineHalves(_mm512_maskz_cvtps_ph(0xffff, __m512(vector), _MM_FROUND_TO_NEAREST_INT));
}
#elif LS_ISA == 3
[[gnu::always_inline]] inline Line::Vector from_f16(LineHalves halves) {
  return Line::Vector(_mm256_cvtph_ps(__m128i(halves)));
}
[[gnu::always_inline]] inline LineHalves to_f16(Line::Vector vector) {
  return LineHalves(_mm256_cvtps_ph(__m256(vector), _MM_FROUND_TO_NEAREST_INT));
}
#else
[[gnu::always_inline]] inline Line::Vector from_f16(LineHalves halves) {
  const LineWords words = widened(halves);
  const LineWords magnitude = (words & 0x7fff) << 13;
  const LineWords finite = LineWords(Line::Vector(magnitude) * 0x1p112F);  // denormals too
  const LineWords value = magnitude >= 0x0f800000 ? magnitude | 0x7f800000 : finite;
  return Line::Vector(value | ((words & 0x8000) << 16));
}
[[gnu::always_inline]] inline LineHalves to_f16(Line::Vector vector) {
  const auto words = LineWords(vector);
  const LineWords magnitude = words & 0x7fffffff;
  const LineWords denormal = LineWords(Line::Vector(magnitude) + 0.5F) - 0x3f000000;
  const LineWords normal = (magnitude + 0xfff + ((magnitude >> 13) & 1) - 0x38000000) >> 13;
  LineWords value = magnitude < 0x38800000 ? denormal : normal;
  value = magnitude >= 0x477ff000 ? LineWords{} + 0x7c00 : value;  // rounds above 65504
  value = magnitude > 0x7f800000 ? 0x7e00 | ((magnitude >> 13) & 0x1ff) : value;
  return narrowed(value | ((words >> 16) & 0x8000));
}
#endif

// The upper half is the value rounded to bf16, the lower half is left.
[[gnu::always_inline]] inline LineWords rounded_to_bf16(Line::Vector vector) {
  const auto words = LineWords(vector);
  return vector != vector ? words | 0x400000 : words + 0x7fff + ((words >> 16) & 1);
}

[[gnu::always_inline]] inline Line load_line(const float* from) {
  return Line::load(from);
}
[[gnu::always_inline]] inline Line load_line(const Half* from) {
  return Line::make(
      [=](int64_t i) { return from_f16(load_halves(&from[i * Line::kVectorLanes].bits)); });
}
[[gnu::always_inline]] inline Line load_line(const BFloat16* from) {
  return Line::make([=](int64_t i) {
    return Line::Vector(widened(load_halves(&from[i * Line::kVectorLanes].bits)) << 16);
  });
}

// Rounds to the type stored.
[[gnu::always_inline]] inline void store_line(const Line& line, float* to) {
  line.store(to);
}
[[gnu::always_inline]] inline void store_line(const Line& line, Half* to) {
  for (int64_t i = 0; i < Line::kVectors; ++i) {
    store_halves(to_f16(line.parts[i]), &to[i * Line::kVectorLanes].bits);
  }
}
[[gnu::always_inline]] inline void store_line(const Line& line, BFloat16* to) {
  for (int64_t i = 0; i < Line::kVectors; ++i) {
    store_halves(narrowed(rounded_to_bf16(line.parts[i]) >> 16), &to[i * Line::kVectorLanes].bits);
  }
}

// The nearest values that T can hold.
template <class T>
[[gnu::always_inline]] inline Line rounded(const Line& line);
template <>
[[gnu::always_inline]] inline Line rounded<float>(const Line& line) {
  return line;
}
template <>
[[gnu::always_inline]] inline Line rounded<Half>(const Line& line) {
  return Line::make([&](int64_t i) { return from_f16(to_f16(line.parts[i])); });
}
template <>
[[gnu::always_inline]] inline Line rounded<BFloat16>(const Line& line) {
  return Line::make(
      [&](int64_t i) { return Line::Vector(rounded_to_bf16(line.parts[i]) & 0xffff0000); });
}

// The first n elements, n <= kLineLanes; zeros behind them.
template <class T>
[[gnu::always_inline]] inline Line load_part(const T* from, int64_t n) {
  T part[kLineLanes] = {};
  std::copy(from, from + n, part);
  return load_line(part);
}

// to[i] = op(from[i]...) rounded, i < n, where op takes and gives lines. `to` may be a `from`.
template <class To, class Op, class... From>
[[gnu::always_inline]] inline void map_lines(int64_t n, To* to, Op&& op, const From*... from) {
  int64_t i = 0;
  for (; i + kLineLanes <= n; i += kLineLanes) store_line(op(load_line(from + i)...), to + i);
  if (i == n) return;
  To part[kLineLanes];
  store_line(op(load_part(from + i, n - i)...), part);
  std::copy(part, part + (n - i), to + i);
}

// to[i] = from[i] rounded, i < n.
template <class From, class To>
[[gnu::always_inline]] inline void convert(const From* from, int64_t n, To* to) {
  map_lines(n, to, [](const Line& line) { return line; }, from);
}

}  // namespace lockstep::kernels::LS_CPU
