// Specification of kernels/image/mix_images.h in double, for the rows of one shard.
#pragma once

#include <vector>

namespace lockstep::reference {

using Rows = std::vector<std::vector<double>>;

inline Rows mix_images(const Rows& images, double mix) {
  Rows mixed = images;
  for (size_t n = 0; n < images.size(); ++n) {
    const std::vector<double>& partner = images[images.size() - 1 - n];
    for (size_t i = 0; i < partner.size(); ++i) {
      mixed[n][i] = mix * images[n][i] + (1 - mix) * partner[i];
    }
  }
  return mixed;
}

}  // namespace lockstep::reference
