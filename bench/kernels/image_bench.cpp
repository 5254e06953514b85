#include <numeric>

#include "bench/kernels/op_bench.h"
#include "core/transfer.h"
#include "kernels/image/erase_boxes.h"
#include "kernels/image/mix_images.h"
#include "kernels/image/normalize_image.h"

namespace lockstep::bench {
namespace {

const Cases kCropFlipCases{
    .cpu = {kF32, {{128, 3, 32, 32}, {32, 3, 224, 224}}},
    .cuda = {kFloatTypes, {{128, 3, 32, 32}, {4096, 3, 32, 32}, {256, 3, 224, 224}}}};

const kernels::CropFlipNormalizeParams kCropFlipParams = {
    .augmentation = {.pad = 4, .flip = Flip::kRandom},
    .normalize = {.mean = std::vector(3, 0.5F), .std = std::vector(3, 0.25F)}};

const Bench kCropFlip("crop_flip_normalize", kCropFlipCases, [](Timer& t) {
  const Tensor in = Tensor::zeros(t.shape(), Dtype::kU8, t.stream().device());
  Tensor counted = Tensor::empty({t[0]}, Dtype::kI64);
  std::iota(counted.span<int64_t>().begin(), counted.span<int64_t>().end(), int64_t{0});
  const Tensor indices = to_device(t.stream(), counted);
  Tensor out = t.empty(in.shape(), t.dtype());
  t.run(in.nbytes() + out.nbytes(), [&] {
    kernels::crop_flip_normalize(t.stream(), t.shards(), in, indices, kCropFlipParams, out);
  });
});

const Cases kNormalizeCases{.cpu = {kF32, {{32, 1, 28, 28}, {32, 3, 224, 224}}},
                            .cuda = {kFloatTypes, {{256, 3, 224, 224}}}};

const Bench kNormalize("normalize_image", kNormalizeCases, [](Timer& t) {
  const Tensor in = Tensor::zeros(t.shape(), Dtype::kU8, t.stream().device());
  Tensor out = t.empty(t.shape(), t.dtype());
  const auto channels = static_cast<size_t>(t[1]);
  const kernels::NormalizeImageParams params = {.mean = std::vector(channels, 0.5F),
                                                .std = std::vector(channels, 0.25F)};
  t.run(in.nbytes() + out.nbytes(),
        [&] { kernels::normalize_image(t.stream(), t.shards(), in, params, out); });
});

const Cases kMixCases{.cpu = {kF32, {{64, 3, 32, 32}, {32, 3, 224, 224}}},
                      .cuda = {{Dtype::kF32, Dtype::kF16}, {{256, 3, 224, 224}}}};

const Bench kMix("mix_images", kMixCases, [](Timer& t) {
  const Tensor mix = t.random({1}, Dtype::kF32, 0);
  Tensor images = t.random(t.shape(), t.dtype());
  t.run(2 * images.nbytes(), [&] { kernels::mix_images(t.stream(), t.shards(), mix, images); });
});

// A quarter of each image, as CutMix cuts on average.
const Bench kSwap("swap_boxes", kMixCases, [](Timer& t) {
  Tensor images = t.random(t.shape(), t.dtype());
  const Region box = {.top = 1, .left = 1, .height = t[2] / 2, .width = t[3] / 2};
  t.run(images.nbytes() / 2, [&] { kernels::swap_boxes(t.stream(), t.shards(), box, images); });
});

const Bench kErase("erase_boxes", kMixCases, [](Timer& t) {
  Tensor images = t.random(t.shape(), t.dtype());
  Tensor counted = Tensor::empty({t[0], 4}, Dtype::kI32);
  for (int64_t i = 0; i < counted.numel(); ++i) {
    const int64_t edges[] = {1, 1, t[2] / 2, t[3] / 2};
    counted.data<int32_t>()[i] = static_cast<int32_t>(edges[i % 4]);
  }
  const Tensor boxes = to_device(t.stream(), counted);
  t.run(images.nbytes() / 4, [&] { kernels::erase_boxes(t.stream(), t.shards(), boxes, images); });
});

}  // namespace
}  // namespace lockstep::bench
