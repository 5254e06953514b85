#include "engine/evaluation/forward_views.h"

#include <cstdlib>
#include <span>
#include <utility>

#include "engine/step/training_batches.h"
#include "kernels/elementwise/add.h"
#include "kernels/elementwise/scale.h"

namespace lockstep {
namespace {

struct View {
  float weight = 1;
  int64_t shift = 0;  // it begins so many pixels further down and right than the image
  bool flip = false;
};

constexpr View kFlipViews[] = {{0.5F, 0, false}, {0.5F, 0, true}};
constexpr View kShiftViews[] = {{0.25F, 0, false},
                                {0.25F, 0, true},
                                {0.125F, -1, false},
                                {0.125F, -1, true},
                                {0.125F, 1, false},
                                {0.125F, 1, true}};

kernels::CropFlipNormalizeParams params_of(const View& view,
                                           const kernels::NormalizeImageParams& normalization) {
  const int64_t pad = std::abs(view.shift);
  return {.augmentation = {.pad = pad, .pad_mode = PadMode::kReflect},
          .normalize = normalization,
          .change = CropFlip{.top = pad + view.shift, .left = pad + view.shift, .flip = view.flip}};
}

}  // namespace

Var forward_views(nn::Module& model, const TestInput& input, const ViewedImages& images) {
  if (images.images.dtype() == Dtype::kF32) {
    return model.forward(samples_on_tape(images.images, images.batch));
  }
  if (input.views == TestViews::kOne) {
    return model.forward(nn::normalize_image(images.images, images.batch, input.normalization));
  }
  Stream& stream = *images.batch->stream;
  const std::span<const View> all = input.views == TestViews::kFlip
                                        ? std::span<const View>(kFlipViews)
                                        : std::span<const View>(kShiftViews);
  Tensor sum;
  for (const View& view : all) {
    const Var x = nn::crop_flip_normalize(
        images.images, images.indices, images.batch, params_of(view, input.normalization));
    Tensor logits = nn::cast(model.forward(x), Dtype::kF32).value();
    kernels::scale(stream, view.weight, logits);
    if (sum.defined()) {
      kernels::add(stream, logits, sum);
    } else {
      sum = std::move(logits);
    }
  }
  return Var(std::move(sum), images.batch);
}

}  // namespace lockstep
