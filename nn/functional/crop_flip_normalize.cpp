#include "kernels/image/crop_flip_normalize.h"

#include <utility>

#include "nn/functional.h"

namespace lockstep::nn {

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
