// Mixes the images of each shard in pairs: the first with the last, the second with the last but
// one, and so on. With an odd number the middle image is unchanged.
#pragma once

#include "core/region.h"
#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// By a weighted sum.
//   out[n] = mix * in[n] + (1 - mix) * in[m],  m = begin + end - 1 - n in the shard [begin, end)
// Each step is rounded to f32, the result to the images' type. Results do not depend on which rank
// has a shard. softmax_cross_entropy with the same `mix` mixes their labels. Source: Zhang et al.
// 2018, "mixup", paired as timm's Mixup pairs a batch. Spec: tests/reference/mix_images.h
//
// In place. Shapes: mix (1) f32, in [0, 1]; images (N,...) f32, f16 or bf16. Errors: ShapeError,
// DtypeError, DeviceError.
using MixImages = void(Stream& stream, const Shards& shards, const Tensor& mix, Tensor& images);

// The row that row n of the shard [begin, end) is mixed with.
LS_HOST_DEVICE int64_t partner_of(int64_t begin, int64_t end, int64_t n) {
  return begin + end - 1 - n;
}

LS_HOST_DEVICE float mixed(float mix, float own, float others) {
  return mix * own + (1 - mix) * others;
}

LS_DECLARE_OP(MixImages, mix_images)

// By exchanging a box of pixels.
//   out[n,:,y,x] = in[m,:,y,x] in the box, in[n,:,y,x] outside of it; m as above
// softmax_cross_entropy with `mix` 1 - box / image mixes their labels. Source: Yun et al. 2019,
// "CutMix". Spec: tests/reference/swap_boxes.h
//
// In place. Shapes: images (N,C,H,W) f32, f16 or bf16. Values keep their bits, including NaN.
// Errors: ShapeError, also for a box that leaves the images; DtypeError, DeviceError.
using SwapBoxes = void(Stream& stream, const Shards& shards, const Region& box, Tensor& images);

LS_DECLARE_OP(SwapBoxes, swap_boxes)

}  // namespace lockstep::kernels
