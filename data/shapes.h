// The built-in data set of train_resnet: colored shapes.
#pragma once

#include "data/drawn_dataset.h"

namespace lockstep::data {

// Color images of 32 x 32, one large shape before a background with clutter, in any position,
// size, rotation and color; classes are those of shape_outline(); 20,000 for training, 4,000 to
// test.
class Shapes : public DrawnDataset {
 public:
  explicit Shapes(Split split);
};

DatasetPair open_shapes();

}  // namespace lockstep::data
