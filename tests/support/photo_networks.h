// Creates AlexNet, VGG and GhostNet by their names in the golden files.
#pragma once

#include <memory>
#include <string>

#include "nn/alexnet.h"
#include "nn/ghostnet.h"
#include "nn/vgg.h"

namespace lockstep::testing {

struct PhotoNetworkOptions {
  int64_t classes = 1000;
  int64_t hidden = 4096;  // of the classifier; GhostNet has a fixed width
  double dropout = 0;
};

inline std::unique_ptr<nn::Module> make_photo_network(const std::string& name,
                                                      const nn::Init& init,
                                                      const PhotoNetworkOptions& options) {
  const auto [classes, hidden, dropout] = options;
  if (name == "alexnet") {
    return std::make_unique<nn::AlexNet>(init, nn::AlexNetOptions{classes, hidden, dropout});
  }
  if (name == "ghostnet_100") {
    return std::make_unique<nn::GhostNet>(init, nn::GhostNetOptions{classes, dropout});
  }
  return std::make_unique<nn::Vgg16>(init,
                                     nn::VggOptions{classes, name == "vgg16_bn", hidden, dropout});
}

}  // namespace lockstep::testing
