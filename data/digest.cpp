#include "data/digest.h"

#include <array>
#include <new>

#include <fmt/format.h>
#include <xxhash.h>

namespace lockstep::data {

void Digest::Free::operator()(XXH3_state_s* state) const {
  XXH3_freeState(state);
}

Digest::Digest() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  XXH3_64bits_reset(state_.get());
}

void Digest::add(std::span<const uint8_t> bytes) {
  XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
}

void Digest::add(std::string_view text) {
  XXH3_64bits_update(state_.get(), text.data(), text.size());
}

void Digest::add(int64_t value) {
  std::array<uint8_t, 8> bytes{};
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i));
  }
  add(bytes);
}

std::string Digest::hex() const {
  return fmt::format("{:016x}", XXH3_64bits_digest(state_.get()));
}

}  // namespace lockstep::data
