// The tutorials' two networks for 28x28 gray images, with PyTorch's parameter names.
#pragma once

#include "nn/layers.h"

#pragma GCC visibility push(default)
namespace lockstep::nn {

// conv5 1->16, BN, ReLU, pool; conv5 16->32, BN, ReLU, pool; fc 1568->10. 29,034 parameters.
// Source: the mixed-precision DDP demo, tutorial 002.
class ConvNet : public Module {
 public:
  explicit ConvNet(const Init& init);
  Var forward(const Var& x) override;

 private:
  Conv2d conv1_;
  BatchNorm bn1_;
  Conv2d conv2_;
  BatchNorm bn2_;
  MaxPool2d pool_;
  Linear fc_;
};

// Four unpadded 3x3 convolutions with BN and ReLU, two pools, dense 8192->512->10. 5,752,714
// parameters.
// Source: the DDP training-tricks demo, tutorial 000.
class ToyNet : public Module {
 public:
  explicit ToyNet(const Init& init);
  Var forward(const Var& x) override;

 private:
  Conv2d conv0_;
  BatchNorm bn1_;
  Conv2d conv3_;
  BatchNorm bn4_;
  Conv2d conv7_;
  BatchNorm bn8_;
  Conv2d conv10_;
  BatchNorm bn11_;
  MaxPool2d pool_;
  Linear dense1_;
  BatchNorm dense2_;
  Linear dense4_;
};

}  // namespace lockstep::nn
#pragma GCC visibility pop
