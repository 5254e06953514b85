// The built-in data set: handwritten-looking digits, drawn on demand.
#pragma once

#include <memory>

#include "data/dataset.h"
#include "data/image_cache.h"

namespace lockstep::data {

// Grey images of 28 x 28, a bright digit on black, 0 to 9. Image i is a pure function of split and
// i, by integer arithmetic and counter-based random numbers only: the same bytes on every machine.
// Drawn at its first read and kept.
class Digits : public Dataset {
 public:
  enum class Split : uint8_t { kTrain, kTest };  // 60,000 and 10,000 images

  explicit Digits(Split split);

  std::string name() const override;
  int64_t size() const override;
  int64_t classes() const override { return 10; }
  ImageShape image_shape() const override { return {1, 28, 28}; }
  int32_t label(int64_t i) const override;
  void read(int64_t i, std::span<uint8_t> pixels) const override;
  // Over all labels and some images: the generator's version shows in both.
  std::string digest() const override;

 private:
  Split split_;
  mutable ImageCache cache_;
};

DatasetPair open_digits();

}  // namespace lockstep::data
