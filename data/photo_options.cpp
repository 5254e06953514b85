#include "data/photo_options.h"

#include <algorithm>
#include <cmath>

namespace lockstep::data {

int64_t CropRamp::side(int64_t epoch, int64_t largest) const {
  if (from == 0 || epoch >= std::max(last, first + 1)) return largest;
  if (epoch <= first) return from;
  constexpr double kMultiple = 32;
  const double slope = static_cast<double>(largest - from) / static_cast<double>(last - first);
  const double exact = slope * static_cast<double>(epoch - first) + static_cast<double>(from);
  const auto rounded = static_cast<int64_t>(std::nearbyint(exact / kMultiple) * kMultiple);
  return std::clamp(rounded, from, largest);
}

}  // namespace lockstep::data
