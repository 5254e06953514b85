// Makes the networks that `--arch` names, and checks that they fit a run.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "data/dataset.h"
#include "engine/settings/batch_division.h"
#include "nn/module.h"
#include "trainers/config/run_request.h"

namespace lockstep::trainers {

struct ModelOptions {
  std::string arch;
  int64_t classes = 10;
  data::ImageShape image;           // of the data set
  bool cifar_stem = false;          // resnet18, resnet34: 3x3 stem of stride 1, no max-pool
  bool zero_init_residual = false;  // resnet18 to resnet152, resnext50_32x4d
  bool blur_pool = false;           // those and seresnet50
  double drop_path = 0;             // of the last block (nn/residual_block.h); networks of blocks
};

// Returns the network that a run asks for, for such images.
ModelOptions network_of(const RunRequest& request, const data::Dataset& images);

// Makes the network. Errors: UsageError naming the known networks, the images that this one is for,
// or the option that it does not have.
std::unique_ptr<nn::Module> make_model(const ModelOptions& options, const nn::Init& init);

// Errors: those of make_model().
void check_network(const ModelOptions& options);

// Returns the network for images of this shape.
ModelOptions at_size(ModelOptions options, const data::ImageShape& image);

// Returns `arch` for the images and classes of the data set that it is made for.
ModelOptions usual_network(const std::string& arch, bool cifar_stem = false);

// Errors: UsageError when the data set has labels that the network has no output for.
void check_classes(const ModelOptions& options, const data::Dataset& dataset);

// Checks that each batch-norm group has enough values. A variance needs two values per channel, so
// a group of one image is enough only where the network's feature maps stay larger than one pixel.
// Errors: UsageError with the numbers when a step of a run of at most `max_steps` has too few.
void check_batch_norm(const BatchDivision& batch,
                      const std::optional<int64_t>& max_steps,
                      const ModelOptions& model,
                      int64_t dataset_images);

}  // namespace lockstep::trainers
