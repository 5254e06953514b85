// A rectangle of an image's pixels.
#pragma once

#include <cstdint>

#pragma GCC visibility push(default)
namespace lockstep {

// Pixels [top, top + height) x [left, left + width).
struct Region {
  int64_t top = 0;
  int64_t left = 0;
  int64_t height = 0;
  int64_t width = 0;

  bool operator==(const Region& other) const = default;
};

}  // namespace lockstep
#pragma GCC visibility pop
