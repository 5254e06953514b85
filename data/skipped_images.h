// Images that cannot be read: others take their places, up to a limit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace lockstep::data {

struct SkippedImage {
  int64_t index = 0;  // in the data set
  std::string why;    // "ants/1.jpg: the file is empty"
};

// So many may be skipped: a thousandth of the data set, or ten, and never all.
inline int64_t skip_limit(int64_t dataset_size) {
  return std::min(std::max<int64_t>(10, dataset_size / 1000), dataset_size - 1);
}

}  // namespace lockstep::data
