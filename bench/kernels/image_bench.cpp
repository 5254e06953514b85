#include <numeric>

#include "bench/kernels/op_bench.h"
#include "core/transfer.h"
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

}  // namespace
}  // namespace lockstep::bench
