// Converts images from bytes to normalized floats, unchanged or cropped and flipped.
#pragma once

#include <optional>
#include <vector>

#include "core/augmentation.h"
#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// From bytes to normalized floats.
//   out[n,c,h,w] = (in[n,c,h,w] / 255 - mean[c]) / std[c], each step rounded to f32, then to out's
//   type
// Source: torchvision's ToTensor and Normalize, bit for bit.
// Spec: tests/reference/normalize_image.h

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

// Crops, flips and normalizes training images in one pass: a random crop of the image, padded with
// black or with its mirror image, and a random flip.
//   out[n,c,y,x] = (byte / 255 - mean[c]) / std[c], each step rounded to f32, then to out's type
//   byte = in[n, c, y + top - pad, x' + left - pad], outside of the image as pixel_at() says;
//   x' = flip ? W-1-x : x
// top, left and flip of image n are draw_crop_flip(augmentation, epoch, indices[n]), see
// core/augmentation.h, or the same for all images. So the result has the same bits as
// data::crop_flip followed by normalize_image. Source: torchvision's RandomCrop(padding),
// RandomHorizontalFlip, ToTensor, Normalize, as sets of results. Spec:
// tests/reference/crop_flip_normalize.h

struct CropFlipNormalizeParams {
  Augmentation augmentation;
  int64_t epoch = 0;
  NormalizeImageParams normalize;
  std::optional<CropFlip> change = {};  // for all images; absent: drawn
};

// Shapes: in (N,C,H,W) u8; indices (N) i64, each image's index in the data set; out (N,C,H,W) f32,
// f16 or bf16. Errors: ShapeError (also unless pad_fits(), and as normalize_image), DtypeError,
// DeviceError. Requires: 0 <= epoch < 2^32.
using CropFlipNormalize = void(Stream& stream,
                               const Shards& shards,
                               const Tensor& in,
                               const Tensor& indices,
                               const CropFlipNormalizeParams& params,
                               Tensor& out);

LS_DECLARE_OP(CropFlipNormalize, crop_flip_normalize)

}  // namespace lockstep::kernels
