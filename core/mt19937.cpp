#include "core/mt19937.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "core/check.h"
#include "core/error.h"

namespace lockstep {
namespace {

constexpr int kShift = 397;

uint32_t twist(uint32_t high, uint32_t low) {
  const uint32_t mixed = (high & 0x80000000U) | (low & 0x7fffffffU);
  return (mixed >> 1) ^ ((low & 1U) != 0 ? 0x9908b0dfU : 0U);
}

uint32_t tempered(uint32_t y) {
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680U;
  y ^= (y << 15) & 0xefc60000U;
  return y ^ (y >> 18);
}

float unit(uint32_t draw) {
  return static_cast<float>(draw & 0xffffffU) * 0x1p-24F;
}

}  // namespace

Mt19937::Mt19937(uint64_t seed) {
  state_[0] = static_cast<uint32_t>(seed);
  for (uint32_t i = 1; i < kStateSize; ++i) {
    state_[i] = 1812433253U * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  }
}

void Mt19937::refill() {
  // Three stretches, so that no index needs a remainder: dividing would take longer than the rest.
  const auto advance = [&](int begin, int end, int shift) {
    for (int i = begin; i < end; ++i) {
      state_[i] = state_[i + shift] ^ twist(state_[i], state_[i + 1]);
    }
  };
  advance(0, kStateSize - kShift, kShift);
  advance(kStateSize - kShift, kStateSize - 1, kShift - kStateSize);
  state_[kStateSize - 1] = state_[kShift - 1] ^ twist(state_[kStateSize - 1], state_[0]);
  used_ = 0;
}

uint32_t Mt19937::next_u32() {
  if (used_ == kStateSize) refill();
  return tempered(state_[used_++]);
}

uint64_t Mt19937::next_u64() {
  const uint64_t high = next_u32();
  return (high << 32) | next_u32();
}

double Mt19937::next_uniform_double() {
  constexpr uint64_t kMask = (uint64_t{1} << 53) - 1;
  return static_cast<double>(next_u64() & kMask) * 0x1p-53;
}

void Mt19937::fill_units(std::span<float> out) {
  while (!out.empty()) {
    if (used_ == kStateSize) refill();
    const size_t count = std::min(out.size(), static_cast<size_t>(kStateSize - used_));
    const uint32_t* const draws = state_.data() + used_;
    for (size_t i = 0; i < count; ++i) out[i] = unit(tempered(draws[i]));
    used_ += static_cast<int>(count);
    out = out.subspan(count);
  }
}

void Mt19937::uniform(std::span<float> out, float low, float high) {
  fill_units(out);
  for (float& value : out) value = std::fma(value, high - low, low);
}

double Mt19937::next_normal_double() {
  if (has_cached_normal_) {
    has_cached_normal_ = false;
    return cached_normal_;
  }
  const double angle = 2 * std::numbers::pi * next_uniform_double();
  const double radius = std::sqrt(-2 * std::log1p(-next_uniform_double()));
  cached_normal_ = radius * std::sin(angle);
  has_cached_normal_ = true;
  return radius * std::cos(angle);
}

void Mt19937::normal(std::span<float> out, float mean, float std) {
  constexpr size_t kBlock = 16;
  if (out.size() < kBlock) {
    for (float& value : out) {
      value = static_cast<float>(next_normal_double() * std + mean);
    }
    return;
  }
  fill_units(out);
  const auto transform = [&](std::span<float> block) {
    for (size_t j = 0; j < kBlock / 2; ++j) {
      const float radius = std::sqrt(-2 * std::log(1 - block[j]));
      const float angle = 2 * std::numbers::pi_v<float> * block[j + kBlock / 2];
      block[j] = radius * std::cos(angle) * std + mean;
      block[j + kBlock / 2] = radius * std::sin(angle) * std + mean;
    }
  };
  for (size_t i = 0; i + kBlock <= out.size(); i += kBlock) transform(out.subspan(i, kBlock));
  if (out.size() % kBlock != 0) {
    const std::span<float> tail = out.last(kBlock);
    fill_units(tail);
    transform(tail);
  }
}

std::vector<int64_t> Mt19937::randperm(int64_t n) {
  LS_CHECK(n >= 0 && n < int64_t{0x100000000} / 20, "[randperm] n: got {}", n);
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  for (int64_t i = 0; i < n - 1; ++i) {
    const int64_t offset = next_u32() % (n - i);
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(i + offset)]);
  }
  return order;
}

}  // namespace lockstep
