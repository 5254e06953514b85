// Vectors of elements of any float type, held as floats in registers, with core/dtype.h's
// conversions.
// Included by *_cpu.cpp files alone: see cpu_loops.h.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__) && !defined(LS_PORTABLE)
#include <immintrin.h>
#endif

#include "core/dtype.h"
#include "kernels/support/cpu/float_tile.h"

namespace lockstep::kernels::LS_CPU {

// A cache line of f32, so that no line is loaded twice if rows collide in the cache.
inline constexpr int64_t kLineLanes = 16;
using Line = FloatTile<kLineLanes>;

using LineWords [[gnu::vector_size(Line::kVectorLanes * 4)]] = uint32_t;
using LineHalves [[gnu::vector_size(Line::kVectorLanes * 2)]] = uint16_t;
using LineInts [[gnu::vector_size(Line::kVectorLanes * 4)]] = int32_t;

[[gnu::always_inline]] inline LineHalves load_halves(const uint16_t* from) {
  LineHalves halves;
  std::memcpy(&halves, from, sizeof(halves));
  return halves;
}
[[gnu::always_inline]] inline void store_halves(LineHalves halves, uint16_t* to) {
  std::memcpy(to, &halves, sizeof(halves));
}

// narrowed() requires words below 2^16. The intrinsics are needed because GCC 12 compiles
// __builtin_convertvector to several instructions here.
#if LS_ISA == 4
[[gnu::always_inline]] inline LineWords widened(LineHalves halves) {
  return LineWords(_mm512_maskz_cvtepu16_epi32(0xffff, __m256i(halves)));
}
[[gnu::always_inline]] inline LineInts load_bytes(const uint8_t* from) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return LineInts(_mm512_maskz_cvtepu8_epi32(0xffff, bytes));
}
[[gnu::always_inline]] inline LineHalves narrowed(LineWords words) {
  return LineHalves(_mm512_maskz_cvtepi32_epi16(0xffff, __m512i(words)));
}
[[gnu::always_inline]] inline LineHalves upper_halves(LineWords words) {
  using Places [[gnu::vector_size(64)]] = uint16_t;
  constexpr Places kPlaces = {1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31};
  const __m512i moved = _mm512_permutexvar_epi16(__m512i(kPlaces), __m512i(words));
  LineHalves halves;
  std::memcpy(&halves, &moved, sizeof(halves));
  return halves;
}
#elif LS_ISA == 3
[[gnu::always_inline]] inline LineWords widened(LineHalves halves) {
  return LineWords(_mm256_cvtepu16_epi32(__m128i(halves)));
}
[[gnu::always_inline]] inline LineInts load_bytes(const uint8_t* from) {
  return LineInts(_mm256_cvtepu8_epi32(_mm_loadu_si64(from)));
}
[[gnu::always_inline]] inline LineHalves narrowed(LineWords words) {
  const auto both = __m256i(words);
  return LineHalves(
      _mm_packus_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1)));
}
[[gnu::always_inline]] inline LineHalves upper_halves(LineWords words) {
  const __m128i places = _mm_setr_epi8(2, 3, 6, 7, 10, 11, 14, 15, -1, -1, -1, -1, -1, -1, -1, -1);
  const __m256i halves = _mm256_shuffle_epi8(__m256i(words), _mm256_broadcastsi128_si256(places));
  return LineHalves(_mm256_castsi256_si128(_mm256_permute4x64_epi64(halves, 0x08)));
}
#elif defined(__x86_64__) && !defined(LS_PORTABLE)
[[gnu::always_inline]] inline LineWords widened(LineHalves halves) {
  return LineWords(_mm_cvtepu16_epi32(_mm_cvtsi64_si128(std::bit_cast<int64_t>(halves))));
}
[[gnu::always_inline]] inline LineInts load_bytes(const uint8_t* from) {
  return LineInts(_mm_cvtepu8_epi32(_mm_loadu_si32(from)));
}
[[gnu::always_inline]] inline LineHalves narrowed(LineWords words) {
  return std::bit_cast<LineHalves>(
      _mm_cvtsi128_si64(_mm_packus_epi32(__m128i(words), __m128i(words))));
}
[[gnu::always_inline]] inline LineHalves upper_halves(LineWords words) {
  return narrowed(words >> 16);
}
#else
[[gnu::always_inline]] inline LineWords widened(LineHalves halves) {
  return __builtin_convertvector(halves, LineWords);
}
[[gnu::always_inline]] inline LineInts load_bytes(const uint8_t* from) {
  using Bytes [[gnu::vector_size(Line::kVectorLanes)]] = uint8_t;
  Bytes bytes;
  std::memcpy(&bytes, from, sizeof(bytes));
  return __builtin_convertvector(bytes, LineInts);
}
[[gnu::always_inline]] inline LineHalves narrowed(LineWords words) {
  return __builtin_convertvector(words, LineHalves);
}
[[gnu::always_inline]] inline LineHalves upper_halves(LineWords words) {
  return narrowed(words >> 16);
}
#endif

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
  const LineWords words = __builtin_convertvector(halves, LineWords);
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
  return __builtin_convertvector(value | ((words >> 16) & 0x8000), LineHalves);
}
#endif

// The upper half of each word is the value rounded to bf16; the lower half is arbitrary.
[[gnu::always_inline]] inline LineWords rounded_to_bf16(Line::Vector vector) {
  const auto words = LineWords(vector);
  return vector != vector ? words | 0x400000 : words + 0x7fff + ((words >> 16) & 1);
}

[[gnu::always_inline]] inline Line::Vector load_vector(const float* from) {
  Line::Vector vector;
  std::memcpy(&vector, from, sizeof(vector));
  return vector;
}
[[gnu::always_inline]] inline Line::Vector load_vector(const Half* from) {
  return from_f16(load_halves(&from->bits));
}
[[gnu::always_inline]] inline Line::Vector load_vector(const BFloat16* from) {
  return Line::Vector(widened(load_halves(&from->bits)) << 16);
}
[[gnu::always_inline]] inline Line::Vector load_vector(const uint8_t* from) {
  return __builtin_convertvector(load_bytes(from), Line::Vector);
}

// Rounds to the type stored.
[[gnu::always_inline]] inline void store_vector(Line::Vector vector, float* to) {
  std::memcpy(to, &vector, sizeof(vector));
}
[[gnu::always_inline]] inline void store_vector(Line::Vector vector, Half* to) {
  store_halves(to_f16(vector), &to->bits);
}
[[gnu::always_inline]] inline void store_vector(Line::Vector vector, BFloat16* to) {
  store_halves(upper_halves(rounded_to_bf16(vector)), &to->bits);
}

template <int64_t kLanes, class T>
[[gnu::always_inline]] inline FloatTile<kLanes> load_tile(const T* from) {
  return FloatTile<kLanes>::make([=] [[gnu::always_inline]] (int64_t i) {
    return load_vector(from + i * Line::kVectorLanes);
  });
}
// Rounds to the type stored.
template <int64_t kLanes, class T>
[[gnu::always_inline]] inline void store_tile(const FloatTile<kLanes>& tile, T* to) {
  FloatTile<kLanes>::make([&] [[gnu::always_inline]] (int64_t i) {
    store_vector(tile.parts[i], to + i * Line::kVectorLanes);
    return tile.parts[i];
  });
}

template <class T>
[[gnu::always_inline]] inline Line load_line(const T* from) {
  return load_tile<kLineLanes>(from);
}
template <class T>
[[gnu::always_inline]] inline void store_line(const Line& line, T* to) {
  store_tile(line, to);
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

// The first n elements, n <= kLineLanes; zeros after them.
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
