// SHA-256, for comparing with digests that PyTorch scripts printed.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::testing {

// Lower-case hex. Source: FIPS 180-4.
inline std::string sha256(std::span<const std::byte> message) {
  // Constants: the first 32 bits of the fractional parts of the square roots (state) and cube roots
  // (k) of primes.
  const auto fraction = [](long double root) {
    return static_cast<uint32_t>((root - static_cast<long double>(static_cast<uint64_t>(root))) *
                                 4294967296.0L);
  };
  std::array<uint32_t, 64> k{};
  std::array<uint32_t, 8> state{};
  size_t primes = 0;
  for (uint32_t n = 2; primes < k.size(); ++n) {
    bool prime = true;
    for (uint32_t d = 2; d * d <= n; ++d) prime = prime && n % d != 0;
    if (!prime) continue;
    if (primes < state.size()) state[primes] = fraction(__builtin_sqrtl(n));
    k[primes++] = fraction(__builtin_cbrtl(n));
  }

  std::vector<uint8_t> data;
  for (const std::byte b : message) data.push_back(static_cast<uint8_t>(b));
  data.push_back(0x80);
  while (data.size() % 64 != 56) data.push_back(0);
  for (int shift = 56; shift >= 0; shift -= 8) {
    data.push_back(static_cast<uint8_t>((uint64_t{message.size()} * 8) >> shift));
  }

  for (size_t block = 0; block < data.size(); block += 64) {
    std::array<uint32_t, 64> w{};
    for (size_t i = 0; i < 64; ++i) {
      if (i < 16) {
        for (size_t b = 0; b < 4; ++b) w[i] = (w[i] << 8) | data[block + 4 * i + b];
      } else {
        const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
        const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
      }
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (size_t i = 0; i < 64; ++i) {
      const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + k[i] + w[i];
      const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const std::array<uint32_t, 8> sum = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < 8; ++i) state[i] += sum[i];
  }

  std::string hex;
  for (const uint32_t word : state) {
    for (int shift = 28; shift >= 0; shift -= 4) hex += "0123456789abcdef"[(word >> shift) & 15U];
  }
  return hex;
}

inline std::string sha256(const std::string& text) {
  return sha256(std::as_bytes(std::span(text)));
}

}  // namespace lockstep::testing
