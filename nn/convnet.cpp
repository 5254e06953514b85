#include "nn/convnet.h"

namespace lockstep::nn {

ConvNet::ConvNet(const Init& init)
    : conv1_(init, {.in_channels = 1, .out_channels = 16, .kernel = 5, .pad = 2}),
      bn1_(init, 16, {.activation = Activation::kRelu}),
      conv2_(init, {.in_channels = 16, .out_channels = 32, .kernel = 5, .pad = 2}),
      bn2_(init, 32, {.activation = Activation::kRelu}),
      pool_(2),
      fc_(init, {32, 7, 7}, 10) {
  register_module("layer1.0", conv1_);
  register_module("layer1.1", bn1_);
  register_module("layer2.0", conv2_);
  register_module("layer2.1", bn2_);
  register_module("fc", fc_);
}

Var ConvNet::forward(const Var& x) {
  const Var features = pool_.forward(bn1_.forward(conv1_.forward(x)));
  return fc_.forward(pool_.forward(bn2_.forward(conv2_.forward(features))));
}

ToyNet::ToyNet(const Init& init)
    : conv0_(init, {.in_channels = 1, .out_channels = 64, .kernel = 3}),
      bn1_(init, 64, {.activation = Activation::kRelu}),
      conv3_(init, {.in_channels = 64, .out_channels = 128, .kernel = 3}),
      bn4_(init, 128, {.activation = Activation::kRelu}),
      conv7_(init, {.in_channels = 128, .out_channels = 256, .kernel = 3}),
      bn8_(init, 256, {.activation = Activation::kRelu}),
      conv10_(init, {.in_channels = 256, .out_channels = 512, .kernel = 3}),
      bn11_(init, 512, {.activation = Activation::kRelu}),
      pool_(2),
      dense1_(init, {512, 4, 4}, 512),
      dense2_(init, 512, {.activation = Activation::kRelu}),
      dense4_(init, 512, 10) {
  register_module("conv.0", conv0_);
  register_module("conv.1", bn1_);
  register_module("conv.3", conv3_);
  register_module("conv.4", bn4_);
  register_module("conv.7", conv7_);
  register_module("conv.8", bn8_);
  register_module("conv.10", conv10_);
  register_module("conv.11", bn11_);
  register_module("dense.1", dense1_);
  register_module("dense.2", dense2_);
  register_module("dense.4", dense4_);
}

Var ToyNet::forward(const Var& x) {
  Var y = bn1_.forward(conv0_.forward(x));
  y = pool_.forward(bn4_.forward(conv3_.forward(y)));
  y = bn8_.forward(conv7_.forward(y));
  y = pool_.forward(bn11_.forward(conv10_.forward(y)));
  return dense4_.forward(dense2_.forward(dense1_.forward(y)));
}

}  // namespace lockstep::nn
