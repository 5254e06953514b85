// MT19937 as PyTorch's CPU generator uses it, so that seeds mean the same thing in both.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#pragma GCC visibility push(default)
namespace lockstep {

// Thread safety: none; one generator belongs to one caller.
// Source: Matsumoto and Nishimura 1998, init_genrand; draws as in torch.Generator on the CPU.
class Mt19937 {
 public:
  explicit Mt19937(uint64_t seed);  // PyTorch seeds with the low 32 bits

  uint32_t next_u32();

  // Fills `out` with uniform values in [low, high): one draw each, 24 bits, one fused multiply-add,
  // bit for bit as torch.Tensor.uniform_ does in f32.
  void uniform(std::span<float> out, float low, float high);

  // Fills `out` with normal values as torch.Tensor.normal_ does in f32: by Box-Muller, for 16 or
  // more elements in blocks of 16, for fewer in pairs in double. Bits differ from PyTorch's
  // approximate log and cosine by at most 1.8e-6 * std.
  void normal(std::span<float> out, float mean, float std);

  // A random permutation of 0..n-1, equal to torch.randperm(n). Requires: 0 <= n < 2^32 / 20.
  std::vector<int64_t> randperm(int64_t n);

 private:
  static constexpr int kStateSize = 624;

  void refill();
  void fill_units(std::span<float> out);  // uniform in [0, 1)
  uint64_t next_u64();
  double next_uniform_double();  // 53 bits in [0, 1)
  double next_normal_double();

  std::array<uint32_t, kStateSize> state_{};
  int used_ = kStateSize;
  double cached_normal_ = 0;
  bool has_cached_normal_ = false;
};

}  // namespace lockstep
#pragma GCC visibility pop
