// Creates residual networks by their names in the golden files.
#pragma once

#include <memory>
#include <string>

#include "nn/cifar_resnet.h"
#include "nn/resnet.h"

namespace lockstep::testing {

// "resnet20", "resnet152", "resnext50_32x4d", "seresnet50"; "resnet18_cifar" has the stem for 32x32
// images, "resnet18_blur" has BlurPool.
inline std::unique_ptr<nn::Module> make_resnet(const std::string& name,
                                               const nn::Init& init,
                                               nn::ResNetOptions options) {
  const int depth = std::stoi(name.substr(name.find_first_of("0123456789")));
  if (name.starts_with("resnext")) {
    options.groups = 32;
    options.group_width = 4;
  }
  options.squeeze_excite = name.starts_with("se");
  options.cifar_stem = name.ends_with("_cifar");
  options.blur_pool = name.ends_with("_blur");
  if (depth % 6 == 2 && depth != 50 && depth != 152) {
    return std::make_unique<nn::CifarResNet>(init, depth, options.classes);
  }
  return std::make_unique<nn::ResNet>(init, depth, options);
}

}  // namespace lockstep::testing
