// The two halves of AlexNet and VGG: a chain of convolutions, then linear layers with dropout.
#pragma once

#include <memory>
#include <vector>

#include "nn/layers.h"

#pragma GCC visibility push(default)
namespace lockstep::nn {

// A convolution, a batch norm if the stack has them, ReLU, and a max-pool of stride 2 if pool > 0.
struct ConvUnit {
  Conv2dOptions conv;
  int pool = 0;  // kernel size, in pixels
};

// Children are named by their index, where ReLUs and pools count, too, as in torchvision.
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

struct DenseHeadOptions {
  Shape in_image;  // (C,H,W)
  int64_t hidden = 4096;
  int64_t classes = 1000;
  double dropout = 0.5;
  // Dropout before the first two layers, as in AlexNet; else before the last two.
  bool dropout_first = false;
};

// linear, ReLU, linear, ReLU, linear: (N,C,H,W) -> (N,classes), with torchvision's names.
class DenseHead : public Module {
 public:
  DenseHead(const Init& init, const DenseHeadOptions& options);
  Var forward(const Var& x) override;

 private:
  const bool dropout_first_;
  std::vector<std::unique_ptr<Linear>> layers_;
  std::vector<std::unique_ptr<Dropout>> dropouts_;
};

}  // namespace lockstep::nn
#pragma GCC visibility pop
