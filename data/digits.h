// The built-in data set of train_convnet: handwritten-looking digits.
#pragma once

#include "data/drawn_dataset.h"

namespace lockstep::data {

// Gray images of 28 x 28, a bright digit on black, 0 to 9; 60,000 for training, 10,000 to test.
class Digits : public DrawnDataset {
 public:
  explicit Digits(Split split);
};

DatasetPair open_digits();

}  // namespace lockstep::data
