#include "kernels/conv/winograd.h"

#include "kernels/support/isa.h"
#include "kernels/support/onednn/version.h"

namespace lockstep::kernels {
namespace {

// The body for the chosen x86-64 level. Argument list in parentheses.
#define LS_DISPATCH_WINOGRAD(name, args)                        \
  if constexpr (is_built(IsaLevel::kV3)) {                      \
    if (isa_level() == IsaLevel::kV3) return cpu_v3::name args; \
  }                                                             \
  if constexpr (is_built(IsaLevel::kV4)) {                      \
    if (isa_level() == IsaLevel::kV4) return cpu_v4::name args; \
  }

// True if filters are square and outputs are as large as inputs.
bool keeps_size(const Shape& weight, const Conv2dParams& params) {
  const int64_t pad = (weight[2] - 1) / 2;
  return weight[3] == weight[2] && params.stride_h == 1 && params.stride_w == 1 &&
         params.pad_h == pad && params.pad_w == pad && params.groups == 1;
}

}  // namespace

bool suits_winograd(const Stream& stream,
                    Dtype dtype,
                    const Shape& in,
                    const Shape& weight,
                    const Conv2dParams& params) {
  if (stream.device() != Device::kCpu || !keeps_size(weight, params)) return false;

  // With fewer channels the transforms cost more than the algorithm saves. Tiles of a smaller image
  // lie mostly outside of it.
  const auto suits = [&](int64_t least_channels, int64_t lanes, int64_t least_edge) {
    return weight[0] >= least_channels && weight[1] >= least_channels && weight[0] % lanes == 0 &&
           weight[1] % lanes == 0 && in[2] >= least_edge && in[3] >= least_edge;
  };
  switch (isa_level()) {
    case IsaLevel::kV3:
      return (weight[2] == 3 || weight[2] == 5) && suits(16, 8, 3);
    case IsaLevel::kV4:  // 24->64 on 31x31 pixels takes 1.2 times the direct sums' time
      return weight[2] == 3 && dtype == Dtype::kBF16 && onednn_has_bf16() && suits(32, 16, 2);
    default:
      return false;
  }
}

void winograd_forward(Stream& stream, const Shards& shards, const Conv2dForwardArgs& args) {
  LS_DISPATCH_WINOGRAD(winograd_forward, (stream, shards, args))
}

void winograd_backward_data(Stream& stream,
                            const Shards& shards,
                            const Tensor& grad_out,
                            const Tensor& weight,
                            const Conv2dParams& params,
                            Tensor& grad_in) {
  LS_DISPATCH_WINOGRAD(winograd_backward_data, (stream, shards, grad_out, weight, params, grad_in))
}

void winograd_backward_weight(Stream& stream,
                              const Shards& shards,
                              const Conv2dBackwardWeightArgs& args) {
  LS_DISPATCH_WINOGRAD(winograd_backward_weight, (stream, shards, args))
}

}  // namespace lockstep::kernels
