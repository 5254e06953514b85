// A first layer that decorrelates the pixels of small patches, fitted to training images.
#pragma once

#include "core/function_ref.h"
#include "kernels/image/normalize_image.h"
#include "nn/module.h"

#pragma GCC visibility push(default)
namespace lockstep::nn {

// A convolution without padding whose filters are frozen and whose bias is trained:
// (N,C,H,W) -> (N,2n,H-R+1,W-R+1) with n = C R R. The bias is initialized to 0, the filters as
// those of a trainable convolution; fit() replaces them by whitening filters.
// Source: Page 2019, "How to Train Your ResNet 8"; Jordan 2024, arXiv 2404.00498.
class Whitening : public Module {
 public:
  Whitening(const Init& init, int64_t channels, int kernel);
  Var forward(const Var& x) override;
  int64_t filters() const { return weight_.shape()[0]; }

  // Fits the filters to all patches of the normalized images (N,C,H,W), u8 on the CPU. With the
  // eigenvalues v and eigenvectors e of their (n,n) matrix of second moments, largest v first, they
  // are e / sqrt(v + 5e-4) and then the same with the other sign. An eigenvector's component of
  // largest magnitude is positive in the first half. Sums over patches are exact, so the filters'
  // bits depend only on the images and on this build.
  // Errors: ShapeError, also for a width of 32,768 or more; EnvironmentError in a build without
  // Eigen.
  void fit(const Tensor& images, const kernels::NormalizeImageParams& normalize);

 private:
  Var weight_;  // (2n,C,R,R)
  Var bias_;    // (2n)
};

// Fits the network's whitening layers. `images` is called only if there are any. Call it on one
// rank and broadcast the weights to the others.
void fit_whitening(Module& network,
                   const kernels::NormalizeImageParams& normalize,
                   FunctionRef<Tensor()> images);

}  // namespace lockstep::nn
#pragma GCC visibility pop
