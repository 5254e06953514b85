// A layer of your own with its gradient: PReLU, which multiplies negative values by a learned
// slope, one per channel. main() compares its gradients with finite differences, and CUDA's with
// the CPU's if the library and this program are built with CUDA and there is a GPU.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include <lockstep/lockstep.h>

#include "prelu.h"

using namespace lockstep;  // NOLINT(google-build-using-namespace): a program of one file

namespace {

void forward(
    Stream& stream, const Shards& shards, const Tensor& x, const Tensor& slope, Tensor& out) {
  const int64_t channels = x.shape()[1];
#ifdef OWN_LAYER_CUDA
  if (stream.device() == Device::kCuda) {
    return prelu_forward_cuda(stream.cuda(),
                              x.data<float>(),
                              slope.data<float>(),
                              out.data<float>(),
                              x.numel(),
                              channels);
  }
#endif
  const int64_t row = x.shape().stride0();  // a rank may have no image
  const float *in = x.data<float>(), *slopes = slope.data<float>();
  float* result = out.data<float>();
  stream.fork(shards.local(), [&](int64_t k, int) {
    for (int64_t i = shards.begin(k) * row; i < shards.begin(k + 1) * row; ++i) {
      result[i] = in[i] > 0 ? in[i] : slopes[i % channels] * in[i];
    }
  });
}

// grad_slope (local shards, channels): the tape expects a parameter's gradient as one sum per shard
// and adds these in its own order, the same on any number of ranks.
void backward(Stream& stream, const Shards& shards, const Tensor& x, PreluGradients of) {
  const int64_t channels = x.shape()[1], row = x.shape().stride0();
  stream.fork(shards.local(), [&](int64_t k, int) {
    const int64_t first = shards.begin(k) * row, count = shards.count(k) * row;
    const PreluGradients shard = {.x = of.x + first,
                                  .slope = of.slope,
                                  .grad_out = of.grad_out + first,
                                  .grad_x = of.grad_x + first,
                                  .grad_slope = of.grad_slope + k * channels};
#ifdef OWN_LAYER_CUDA
    if (stream.device() == Device::kCuda) {
      return prelu_backward_cuda(stream.cuda(), shard, count, channels);
    }
#endif
    std::fill_n(shard.grad_slope, channels, 0.0F);
    for (int64_t i = 0; i < count; ++i) {
      const float x_i = shard.x[i], grad = shard.grad_out[i];
      shard.grad_x[i] = x_i > 0 ? grad : shard.slope[i % channels] * grad;
      if (x_i <= 0) shard.grad_slope[i % channels] += grad * x_i;
    }
  });
}

// x (N,C) or (N,C,H,W) f32, slope (C).
Var prelu(const Var& x, const Var& slope) {
  Tensor out = Tensor::empty(x.shape(), Dtype::kF32, x.stream().device());
  forward(x.stream(), x.shards(), x.value(), slope.value(), out);
  return record("prelu", out, {x, slope}, [=](Stream& stream, Tensor& grad_out, Grads& grads) {
    Tensor grad_x = Tensor::empty(x.shape(), Dtype::kF32, stream.device());
    Tensor grad_slope =
        Tensor::empty({x.shards().local(), slope.shape()[0]}, Dtype::kF32, stream.device());
    backward(stream,
             x.shards(),
             x.value(),
             {.x = x.value().data<float>(),
              .slope = slope.value().data<float>(),
              .grad_out = grad_out.data<float>(),
              .grad_x = grad_x.data<float>(),
              .grad_slope = grad_slope.data<float>()});
    if (grads.wants(0)) grads.give(0, grad_x);
    if (grads.wants(1)) grads.give(1, grad_slope);
  });
}

class PRelu : public nn::Module {
 public:
  PRelu(const nn::Init& init, int64_t channels) {
    Tensor slope = Tensor::zeros({channels}, Dtype::kF32);
    std::ranges::fill(slope.span<float>(), 0.25F);  // PyTorch's
    weight_ = register_parameter("weight", to_device(init.device, slope));
  }
  Var forward(const Var& x) override { return prelu(x, weight_); }

 private:
  Var weight_;  // (C)
};

class Network : public nn::Module {
 public:
  explicit Network(const nn::Init& init) : in_(init, 4, 8), prelu_(init, 8), out_(init, 8, 3) {
    register_module("in", in_);
    register_module("prelu", prelu_);
    register_module("out", out_);
  }
  Var forward(const Var& x) override { return out_.forward(prelu_.forward(in_.forward(x))); }

 private:
  nn::Linear in_;
  PRelu prelu_;
  nn::Linear out_;
};

// Images of four values and their labels, in three shards.
class Problem {
 public:
  explicit Problem(Device device, int32_t images = 12)
      : stream_(device), images_(images), network_(nn::Init{rng_, device}) {
    Tensor x = Tensor::empty({images, 4}, Dtype::kF32);
    Tensor labels = Tensor::empty({images}, Dtype::kI32);
    rng_.uniform(x.span<float>(), -2, 2);
    for (int32_t i = 0; i < images; ++i) labels.data<int32_t>()[i] = i % 3;
    x_ = to_device(stream_, x);
    labels_ = to_device(stream_, labels);
  }

  const Network& network() const { return network_; }
  Var loss() {
    const auto batch = nn::make_batch(stream_, Shards::cut(images_, 3, 1));
    return nn::softmax_cross_entropy(network_.forward(Var(x_, batch)), labels_).loss;
  }
  double loss_value() {
    double sum = 0;
    const Tensor leaves = to_cpu(stream_, loss().value());
    for (const float leaf : leaves.span<float>()) sum += leaf;
    return sum;
  }
  // Of all parameters, one after another.
  std::vector<float> gradients() {
    loss().backward();
    std::vector<float> all;
    for (const Var& parameter : network_.parameters()) {
      const Tensor leaves = to_cpu(stream_, parameter.grad());
      for (int64_t i = 0; i < parameter.shape().numel(); ++i) {
        float sum = 0;
        for (int64_t k = 0; k < leaves.shape()[0]; ++k) sum += leaves.slice(k, 1).data<float>()[i];
        all.push_back(sum);
      }
    }
    return all;
  }

 private:
  Stream stream_;
  int64_t images_;
  Mt19937 rng_{3};
  Network network_;
  Tensor x_, labels_;
};

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::fmax(largest, std::abs(a[i] - b[i]));
  return largest;
}

std::vector<float> finite_differences(Problem& problem) {
  constexpr float kStep = 2e-3F;  // no value lies so near to 0, where the slope jumps
  std::vector<float> slopes;
  for (const Var& parameter : problem.network().parameters()) {
    Tensor values = parameter.value();  // the same memory
    for (float& value : values.span<float>()) {
      const float middle = value;
      value = middle + kStep;
      const double above = problem.loss_value();
      value = middle - kStep;
      const double below = problem.loss_value();
      value = middle;
      slopes.push_back(static_cast<float>((above - below) / (2 * kStep)));
    }
  }
  return slopes;
}

}  // namespace

int main() {
  try {
    Problem problem(Device::kCpu);
    const std::vector<float> gradients = problem.gradients();
    const double error = largest_difference(gradients, finite_differences(problem));
    std::printf(
        "CPU: %zu gradients, at most %.1e from finite differences\n", gradients.size(), error);
    if (!(error < 1e-3)) return 1;
    Problem(Device::kCpu, 0).gradients();  // a rank may have no images in the last step
#ifdef OWN_LAYER_CUDA
    if (cuda::visible_devices() == 0) return std::puts("CUDA: there is no card"), 0;
    const double apart = largest_difference(gradients, Problem(Device::kCuda).gradients());
    std::printf("CUDA: at most %.1e from the CPU's\n", apart);
    if (!(apart < 1e-5)) return 1;
#else
    std::puts("CUDA: not in this build");
#endif
  } catch (const Error& error) {
    std::fputs(format_error(error).c_str(), stderr);
    return static_cast<int>(error.code());
  }
}
