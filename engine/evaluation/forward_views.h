// Runs a network on one or several views of each image.
#pragma once

#include <memory>

#include "engine/settings/test_views.h"
#include "kernels/image/normalize_image.h"
#include "nn/functional.h"
#include "nn/module.h"

namespace lockstep {

// How images are turned into a network's input.
struct TestInput {
  kernels::NormalizeImageParams normalization = {};
  TestViews views = TestViews::kOne;
};

struct ViewedImages {
  const Tensor& images;   // (N,C,H,W) u8; or f32, of which there is one view
  const Tensor& indices;  // (N) i64, in the data set; of no use for one view
  std::shared_ptr<const Batch> batch;
};

// Returns the logits (N, classes) of the images as they are, in the network's type; for several
// views their weighted mean in f32, added in the order of the views. Weights are powers of two, so
// only the additions round. Errors: ShapeError for images of one pixel's width that are shifted.
Var forward_views(nn::Module& model, const TestInput& input, const ViewedImages& images);

}  // namespace lockstep
