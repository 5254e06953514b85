// Random pixels and labels, for speed measurements.
#pragma once

#include <string>

#include "data/dataset.h"

namespace lockstep::data {

// Image i, with uniform random bytes and a uniform random label, is a pure function of the options
// and i.
class Synthetic : public Dataset {
 public:
  struct Options {
    int64_t images = 1024;
    int64_t classes = 10;
    ImageShape shape;
    uint64_t seed = 0;
  };

  // Requires: at least 1 image, 1 class and 1 pixel, below 2^26 bytes per image.
  explicit Synthetic(const Options& options);

  std::string name() const override { return "synthetic"; }
  int64_t size() const override { return options_.images; }
  int64_t classes() const override { return options_.classes; }
  ImageShape image_shape() const override { return options_.shape; }
  int32_t label(int64_t i) const override;
  void read(int64_t i, std::span<uint8_t> pixels) const override;
  std::string digest() const override;  // over the options

 private:
  Options options_;
};

}  // namespace lockstep::data
