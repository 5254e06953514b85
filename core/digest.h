// XXH3-64 digests, to tell whether two places hold the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/tensor.h"

namespace lockstep {

uint64_t digest(std::span<const std::byte> bytes);

// The digest of bytes that come in pieces. It does not depend on where they are cut.
class Digest {
 public:
  Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;
  ~Digest();

  void update(std::span<const std::byte> bytes);
  void update(std::string_view text);
  void update(uint64_t number);  // its 8 bytes, little-endian

  uint64_t value() const;  // of all bytes so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Digest over name, dtype, shape and row-major bytes of each tensor, in name order. Equal for equal
// content in any order and layout. Errors: DeviceError off the CPU.
uint64_t digest_of(const std::map<std::string, Tensor>& tensors);
// Digest of tensors whose memory is row-major at any rank, as in core/safetensors.h.
uint64_t digest_of_row_major(const std::map<std::string, Tensor>& tensors);
// Digest over dtype, shape and row-major bytes of one tensor.
uint64_t digest_of(const Tensor& tensor);

// 16 lower-case hex digits.
std::string to_hex(uint64_t digest);

}  // namespace lockstep
