#include <utility>

#include "kernels/elementwise/add.h"
#include "kernels/elementwise/fill.h"
#include "kernels/image/normalize_image.h"
#include "nn/functional.h"

namespace lockstep::nn {

std::shared_ptr<const Batch> make_batch(Stream& stream,
                                        Shards shards,
                                        bool recording,
                                        const Precision& precision,
                                        TapeListener* listener,
                                        Draws draws) {
  shards.check();
  auto batch = std::make_shared<Batch>();
  batch->stream = &stream;
  batch->shards = std::move(shards);
  batch->precision = precision;
  batch->recording = recording;
  batch->accumulate = kernels::add;
  batch->fill = kernels::fill;
  batch->listener = listener;
  batch->draws = std::move(draws);
  return batch;
}

Var normalize_image(const Tensor& images,
                    std::shared_ptr<const Batch> batch,
                    const kernels::NormalizeImageParams& params) {
  Stream& stream = *batch->stream;
  Tensor out = Tensor::empty(images.shape(), batch->precision.images, stream.device());
  kernels::normalize_image(stream, batch->shards, images, params, out);
  return Var(std::move(out), std::move(batch));
}

Var crop_flip_normalize(const Tensor& images,
                        const Tensor& indices,
                        std::shared_ptr<const Batch> batch,
                        const kernels::CropFlipNormalizeParams& params) {
  Stream& stream = *batch->stream;
  Tensor out = Tensor::empty(images.shape(), batch->precision.images, stream.device());
  kernels::crop_flip_normalize(stream, batch->shards, images, indices, params, out);
  return Var(std::move(out), std::move(batch));
}

}  // namespace lockstep::nn
