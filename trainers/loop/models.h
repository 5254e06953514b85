// The networks that `--arch` names.
#pragma once

#include <memory>
#include <string>

#include "data/dataset.h"
#include "nn/module.h"

namespace lockstep::trainers {

struct ModelOptions {
  std::string arch;
  int64_t classes = 10;
  data::ImageShape image;           // of the data set
  bool cifar_stem = false;          // resnet18, resnet34: 3x3 stem of stride 1, no max-pool
  bool zero_init_residual = false;  // resnet18 to resnet152
};

// Errors: UsageError naming the networks known, the images that this one is for, or the option that
// it does not have.
std::unique_ptr<nn::Module> make_model(const ModelOptions& options, const nn::Init& init);

// `arch` for the images and classes of the data set that it is made for.
ModelOptions usual_network(const std::string& arch, bool cifar_stem = false);

// Errors: UsageError when the data set has labels that the network has no output for.
void check_classes(const ModelOptions& options, const data::Dataset& dataset);

}  // namespace lockstep::trainers
