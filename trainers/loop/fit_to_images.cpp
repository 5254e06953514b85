#include "trainers/loop/fit_to_images.h"

#include <algorithm>

#include "data/codecs/decode_image.h"
#include "nn/whitening.h"
#include "trainers/config/augmentation_config.h"

namespace lockstep::trainers {
namespace {

constexpr int64_t kImages = 5000;  // as airbench has it

// u8 (N,C,H,W).
Tensor read_first(const data::Dataset& images) {
  const auto [channels, height, width] = images.image_shape();
  Tensor pixels =
      Tensor::empty({std::min(kImages, images.size()), channels, height, width}, Dtype::kU8);
  const auto bytes = static_cast<size_t>(channels * height * width);
  int64_t read = 0;
  for (int64_t i = 0; i < images.size() && read < pixels.shape()[0]; ++i) {
    try {
      images.read(i, {pixels.data<uint8_t>() + read * pixels.shape().stride0(), bytes});
      ++read;
    } catch (const data::UnreadableImage&) {
      continue;  // the loader, which takes another one, says so
    }
  }
  return pixels.slice(0, read);
}

}  // namespace

void fit_to_images(const RunRequest& request, const data::Dataset& train, nn::Module& network) {
  nn::fit_whitening(
      network, normalization(request.normalize, train), [&] { return read_first(train); });
}

}  // namespace lockstep::trainers
