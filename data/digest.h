// A checksum that is built up piece by piece.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace lockstep::data {

// XXH3-64 of all bytes added so far; how they were cut into calls makes no difference.
class Digest {
 public:
  Digest();

  void add(std::span<const uint8_t> bytes);
  void add(std::string_view text);
  void add(int64_t value);  // 8 bytes, little-endian

  std::string hex() const;  // 16 digits

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

}  // namespace lockstep::data
