#include "kernels/image/normalize_image.h"

#include <utility>

#include "nn/functional.h"

namespace lockstep::nn {

Var normalize_image(const Tensor& images,
                    std::shared_ptr<const Batch> batch,
                    const kernels::NormalizeImageParams& params) {
  Stream& stream = *batch->stream;
  Tensor out = Tensor::empty(images.shape(), batch->precision.images, stream.device());
  kernels::normalize_image(stream, batch->shards, images, params, out);
  return Var(std::move(out), std::move(batch));
}

}  // namespace lockstep::nn
