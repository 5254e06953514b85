// Built-in data sets whose images are drawn on demand.
#pragma once

#include <span>
#include <string>

#include "core/philox.h"
#include "data/dataset.h"
#include "data/image_cache.h"

namespace lockstep::data {

// Ten classes. Image i is a pure function of split and i, by integer arithmetic and counter-based
// random numbers only: the same bytes on every machine. Drawn at its first read and kept.
class DrawnDataset : public Dataset {
 public:
  enum class Split : uint8_t { kTrain, kTest };

  struct Recipe {
    const char* name = "";
    int64_t train_images = 0;
    int64_t test_images = 0;
    ImageShape shape;
    uint64_t seed = 0;
    RandomPurpose purpose = RandomPurpose::kDigits;
    // Draws one image of class `label` in HWC order.
    void (*draw)(PhiloxStream& random, int32_t label, std::span<uint8_t> pixels) = nullptr;
  };

  // Borrows: the recipe.
  DrawnDataset(const Recipe& recipe, Split split);

  std::string name() const override;
  int64_t size() const override { return size_; }
  int64_t classes() const override { return 10; }
  ImageShape image_shape() const override { return recipe_.shape; }
  int32_t label(int64_t i) const override;
  void read(int64_t i, std::span<uint8_t> pixels) const override;
  // Over all labels and some images: the recipe's version shows in both.
  std::string digest() const override;

 private:
  PhiloxStream stream_of(int64_t i) const;

  const Recipe& recipe_;
  Split split_;
  int64_t size_;
  mutable ImageCache cache_;
};

}  // namespace lockstep::data
