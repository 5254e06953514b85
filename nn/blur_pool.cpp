#include "nn/blur_pool.h"

#include "kernels/elementwise/copy.h"
#include "nn/autocast.h"
#include "nn/init.h"

namespace lockstep::nn {
namespace {

constexpr int kBlurSide = 3;
constexpr int64_t kFewestBlurredChannels = 16;

Tensor blur_filters(const Init& init, int64_t channels) {
  Tensor filters = Tensor::empty({channels, 1, kBlurSide, kBlurSide}, Dtype::kF32, init.device);
  binomial(init, filters);
  return filters;
}

}  // namespace

BlurPoolConv2d::BlurPoolConv2d(const Init& init, const Conv2dOptions& options)
    : conv_(init, options),
      filter_(register_buffer("blur_filter", blur_filters(init, options.in_channels))) {
  register_module("conv", conv_);
}

Var BlurPoolConv2d::blurred(const Var& input) const {
  const Var x = cast_for_products(input);
  Tensor filter = filter_;
  if (x.dtype() != filter.dtype()) {
    filter = Tensor::empty(filter_.shape(), x.dtype(), filter_.device());
    kernels::cast(x.stream(), filter_, filter);
  }
  constexpr int kPad = kBlurSide / 2;
  return depthwise_conv2d(x, Var(filter), {.pad_h = kPad, .pad_w = kPad});
}

std::unique_ptr<ConvToNorm> make_conv(const Init& init,
                                      const Conv2dOptions& options,
                                      bool blur_pool) {
  if (blur_pool && options.stride > 1 && options.in_channels >= kFewestBlurredChannels) {
    return std::make_unique<BlurPoolConv2d>(init, options);
  }
  return std::make_unique<Conv2d>(init, options);
}

}  // namespace lockstep::nn
