// Layers: functional operations with their parameters, initialized as PyTorch's layers of the same
// names; and Sequential.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "nn/conv_norm.h"
#include "nn/module.h"

#pragma GCC visibility push(default)
namespace lockstep::nn {

struct Conv2dOptions {
  int64_t in_channels = 0, out_channels = 0;
  int kernel = 1, stride = 1, pad = 0;  // square, in pixels
  bool bias = true;
  int groups = 1;
};

// A convolution before a batch norm: no bias, and kernel / 2 pixels of padding.
inline Conv2dOptions conv_before_norm(int64_t in, int64_t out, int kernel, int stride = 1) {
  return {.in_channels = in,
          .out_channels = out,
          .kernel = kernel,
          .stride = stride,
          .pad = kernel / 2,
          .bias = false};
}

class BatchNorm;

// Base of the convolutions that may be followed by a batch norm.
class ConvToNorm : public Module {
 public:
  // Computes the input of a batch norm. Requires: no bias.
  virtual NormInput to_norm(const Var& x) = 0;
  // Computes to_norm(norm.forward(x)) and frees the normalized value, which nothing else may use.
  virtual NormInput to_norm(NormInput x, BatchNorm& norm);
};

// (N,C,H,W) -> (N,K,OH,OW).
class Conv2d : public ConvToNorm {
 public:
  Conv2d(const Init& init, const Conv2dOptions& options);
  Var forward(const Var& x) override;
  NormInput to_norm(const Var& x) override;
  NormInput to_norm(NormInput x, BatchNorm& norm) override;

 private:
  kernels::Conv2dParams params_;
  Var weight_;  // (K,C/groups,R,S)
  Var bias_;    // (K) or undefined
};

struct DepthwiseConv2dOptions {
  int64_t channels = 0;
  int kernel = 3, stride = 1;  // square, in pixels; kernel / 2 of padding
};

// One filter per channel, without bias: (N,C,H,W) -> (N,C,OH,OW).
class DepthwiseConv2d : public Module {
 public:
  DepthwiseConv2d(const Init& init, const DepthwiseConv2dOptions& options);
  Var forward(const Var& x) override;

 private:
  kernels::Conv2dParams params_;
  Var weight_;  // (C,1,R,S)
};

// A 1x1 convolution of one-pixel images, which are given as rows: (N,C) -> (N,K).
class OnePixelConv2d : public Module {
 public:
  OnePixelConv2d(const Init& init, int64_t in_channels, int64_t out_channels);
  Var forward(const Var& x) override;

 private:
  Var weight_;  // (K,C,1,1)
  Var bias_;    // (K)
};

struct BatchNormOptions {
  Activation activation = Activation::kNone;  // after it, in the same pass
  float eps = 1e-5F;
  float momentum = 0.1F;    // weight of a step's statistics in the running ones, as in PyTorch
  bool fixed_gain = false;  // the weight is a frozen parameter that stays 1
};

// Batch normalization of (N,C,H,W) or (N,C). A residual, if given, is added before the activation,
// which must not be GELU.
class BatchNorm : public Module {
 public:
  BatchNorm(const Init& init, int64_t channels, const BatchNormOptions& options = {});
  Var forward(const Var& x) override { return forward(NormInput{x}); }
  Var forward(const NormInput& x);
  Forked forward(const NormInput& x, const Var& residual);
  // Leaves out the activation. Requires: training().
  Var before_activation(const NormInput& x);
  void count_step() override { ++*num_batches_tracked_.data<int64_t>(); }
  void set_groups(BatchNormGroups groups) { state_.groups = groups; }
  BatchNormGroups groups() const { return state_.groups; }

 private:
  friend class Conv2d;
  void begin_step(const Var& x);  // in training

  BatchNormState state_;
  Tensor num_batches_tracked_;  // i64, one element
};

// From now on `model`'s batch norms treat all ranks' images as one group, whatever the batch's
// groups are. Source: torch.nn.SyncBatchNorm.convert_sync_batchnorm
void convert_sync_batchnorm(Module& model);

class Gelu : public Module {
 public:
  explicit Gelu(kernels::GeluForm form = kernels::GeluForm::kErf) : form_(form) {}
  Var forward(const Var& x) override { return gelu(x, form_); }

 private:
  kernels::GeluForm form_;
};

class GlobalAvgPool : public Module {
 public:
  Var forward(const Var& x) override { return global_avg_pool(x); }
};

class MaxPool2d : public Module {
 public:
  explicit MaxPool2d(int kernel) : MaxPool2d(kernel, kernel, 0) {}
  MaxPool2d(int kernel, int stride, int pad);  // square, in pixels
  Var forward(const Var& x) override;

 private:
  kernels::MaxPool2dParams params_;
};

// Zeroes elements at random while training, drawn from the batch's image numbers: see
// kernels/random/dropout.h.
class Dropout : public Module {
 public:
  // `layer` is different for each dropout of a network. Requires: 0 <= p <= 1.
  Dropout(double p, uint32_t layer) : p_(p), layer_(layer) {}
  Var forward(const Var& x) override;

 private:
  double p_;
  uint32_t layer_;
};

// Flattens (N,C,H,W) as PyTorch does and maps it to (N,O); in files the weight is (O, C*H*W). In
// memory its columns are in the activations' channels-last order, so that no training step
// transposes it.
class Linear : public Module {
 public:
  // For rows (N,K), or images of one pixel or one channel; forward() throws ShapeError for others.
  Linear(const Init& init, int64_t in_features, int64_t out_features, bool bias = true);
  Linear(const Init& init, const Shape& in_image, int64_t out_features);  // in_image (C,H,W)
  Var forward(const Var& x) override;

 private:
  Var weight_;  // (O,K) or (O,C,H,W)
  Var bias_;    // (O) or undefined
};

// A chain of modules, which it owns. They are named "0", "1", ...
class Sequential : public Module {
 public:
  Sequential() = default;
  explicit Sequential(std::vector<std::unique_ptr<Module>> modules) {
    for (std::unique_ptr<Module>& module : modules) append(std::move(module));
  }

  // Makes the next module from a constructor's arguments.
  template <class T, class... Args>
  T& add(Args&&... args) {
    auto module = std::make_unique<T>(std::forward<Args>(args)...);
    T& made = *module;
    append(std::move(module));
    return made;
  }
  Var forward(const Var& x) override {
    Var y = x;
    for (Module* const module : modules_) y = module->forward(y);
    return y;
  }

 private:
  void append(std::unique_ptr<Module> module) {
    modules_.push_back(module.get());
    own_module(std::to_string(modules_.size() - 1), std::move(module));
  }

  std::vector<Module*> modules_;
};

}  // namespace lockstep::nn
#pragma GCC visibility pop
