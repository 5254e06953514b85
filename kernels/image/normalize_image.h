// From bytes to normalized floats.
//   out[n,c,h,w] = (in[n,c,h,w] / 255 - mean[c]) / std[c], each step rounded to f32, then to out's
//   type
// Source: torchvision's ToTensor and Normalize, bit for bit. Spec:
// tests/reference/normalize_image.h
#pragma once

#include <vector>

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

struct NormalizeImageParams {  // per channel; empty means 0 and 1
  std::vector<float> mean, std;

  float mean_of(size_t channel) const { return mean.empty() ? 0 : mean[channel]; }
  float std_of(size_t channel) const { return std.empty() ? 1 : std[channel]; }
};

// Shapes: in (N,C,H,W) u8; out (N,C,H,W) f32, f16 or bf16. Errors: ShapeError (also unless mean and
// std have C elements or none, and on CUDA for more than 64 channels), DtypeError, DeviceError.
using NormalizeImage = void(Stream& stream,
                            const Shards& shards,
                            const Tensor& in,
                            const NormalizeImageParams& params,
                            Tensor& out);

LS_DECLARE_OP(NormalizeImage, normalize_image)

}  // namespace lockstep::kernels
