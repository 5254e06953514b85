// Images with random augmentations, for tests of kernels/image/normalize_image.h.
#pragma once

#include <algorithm>
#include <vector>

#include "core/tensor.h"
#include "kernels/image/normalize_image.h"

namespace lockstep::testing {

struct AugmentedImages {
  AugmentedImages(const Shape& shape, int64_t pad, Flip flip, PadMode mode = PadMode::kZero)
      : in(Tensor::empty(shape, Dtype::kU8)), indices(Tensor::empty({shape[0]}, Dtype::kI64)) {
    for (int64_t i = 0; i < in.numel(); ++i) {
      in.data<uint8_t>()[i] = static_cast<uint8_t>(1 + i % 251);
    }
    for (int64_t n = 0; n < shape[0]; ++n) {
      indices.data<int64_t>()[n] = 7 * n + (n % 3 == 2 ? int64_t{1} << 40 : 0);
    }
    params.augmentation = {
        .pad = pad, .pad_mode = mode, .flip = flip, .seed = (uint64_t{3} << 32) + 5};
    params.epoch = 3;
    for (int64_t c = 0; c < shape[1]; ++c) {
      params.normalize.mean.push_back(0.4F + 0.03F * static_cast<float>(c));
      params.normalize.std.push_back(0.2F + 0.01F * static_cast<float>(c));
    }
  }

  CropFlip draw(int64_t n) const {
    if (params.change) return *params.change;
    return draw_crop_flip(params.augmentation, params.epoch, indices.data<int64_t>()[n]);
  }

  // One for each combination of flip and padding, and two that change all images alike.
  static std::vector<AugmentedImages> of_each_kind(const Shape& shape) {
    const int64_t shorter = std::min(shape[2], shape[3]);
    std::vector<AugmentedImages> kinds;
    for (const int64_t pad : {0, 1, 3}) {
      for (const Flip flip : {Flip::kNone, Flip::kRandom, Flip::kAlternating}) {
        kinds.emplace_back(shape, pad, flip);
        if (pad < shorter) kinds.emplace_back(shape, pad, flip, PadMode::kReflect);
      }
    }
    for (const bool flip : {false, true}) {
      kinds.emplace_back(shape, 1, Flip::kNone, PadMode::kReflect);
      kinds.back().params.change = CropFlip{.top = 2, .left = 0, .flip = flip};
    }
    return kinds;
  }

  Tensor in, indices;
  kernels::CropFlipNormalizeParams params;
};

}  // namespace lockstep::testing
