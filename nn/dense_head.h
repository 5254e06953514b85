// Three linear layers with dropout: the classifiers of AlexNet and VGG.
#pragma once

#include <memory>
#include <vector>

#include "nn/layers.h"

namespace lockstep::nn {

struct DenseHeadOptions {
  Shape in_image;  // (C,H,W)
  int64_t hidden = 4096;
  int64_t classes = 1000;
  double dropout = 0.5;
  bool dropout_first =
      false;  // before the first two layers, as in AlexNet; else before the last two
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
