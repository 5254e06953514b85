// Replaces comm/shared/word.h: another rank may run before and after each access.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "tests/explore/explorer.h"

namespace lockstep::comm {

class Word {
 public:
  uint32_t load(std::memory_order = std::memory_order_seq_cst) const {
    return explore::access([&] { return value_; });
  }
  void store(uint32_t value, std::memory_order = std::memory_order_seq_cst) {
    explore::access([&] { return value_ = value; });
  }
  uint32_t fetch_add(uint32_t more, std::memory_order = std::memory_order_seq_cst) {
    return explore::access([&] { return std::exchange(value_, value_ + more); });
  }
  uint32_t fetch_sub(uint32_t less, std::memory_order = std::memory_order_seq_cst) {
    return explore::access([&] { return std::exchange(value_, value_ - less); });
  }

  // Reads the value without a switch of ranks. The explorer's futex_wait compares and sleeps in one
  // step.
  uint32_t peek() const { return value_; }

 private:
  uint32_t value_ = 0;
};

}  // namespace lockstep::comm
