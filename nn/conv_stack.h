// Chains of convolutions: the features of AlexNet and VGG.
#pragma once

#include <memory>
#include <vector>

#include "nn/layers.h"

namespace lockstep::nn {

// A convolution, batch norm where the stack has it, ReLU, and a max-pool of stride 2 where
// pool > 0.
struct ConvUnit {
  Conv2dOptions conv;
  int pool = 0;  // kernel, in pixels
};

// Children are named by their places, where ReLUs and pools have one too: torchvision's names.
class ConvStack : public Module {
 public:
  ConvStack(const Init& init, const std::vector<ConvUnit>& units, bool batch_norm);
  Var forward(const Var& x) override;

 private:
  struct Layers {
    std::unique_ptr<Conv2d> conv;
    std::unique_ptr<BatchNorm> norm;  // with the ReLU
    std::unique_ptr<MaxPool2d> pool;
  };
  std::vector<Layers> layers_;
};

}  // namespace lockstep::nn
