// One block per image, whose threads take adjacent values of its box. Traffic: 16 bytes per image,
// and each erased value is written once. Bound: DRAM.
#include "core/cuda/launch.h"
#include "kernels/image/erase_boxes.h"
#include "kernels/support/cuda/numeric.cuh"
#include "kernels/support/cuda/pack.cuh"

namespace lockstep::kernels::cuda {
namespace {

constexpr int kEraseThreads = 128;

template <class T>
__global__ void __launch_bounds__(kEraseThreads) erase_boxes_kernel(
    const int32_t* boxes, int channels, int64_t row_size, int64_t size, T* images) {
  const int64_t n = blockIdx.x;
  const int32_t* const box = boxes + 4 * n;
  const int columns = box[3] * channels;
  const int values = box[2] * columns;
  T* const first = images + n * size + box[0] * row_size + box[1] * channels;
  for (int i = static_cast<int>(threadIdx.x); i < values; i += kEraseThreads)
    first[i / columns * row_size + i % columns] = from_float<T>(0);
}

}  // namespace

void erase_boxes(Stream& stream, const Shards& /*shards*/, const Tensor& boxes, Tensor& images) {
  if (images.numel() == 0) return;
  const Shape& shape = images.shape();
  with_float_type(images.dtype(), [&]<class T>() {
    lockstep::cuda::launch(stream,
                           "erase_boxes",
                           {static_cast<unsigned>(shape[0]), kEraseThreads},
                           erase_boxes_kernel<T>,
                           boxes.data<int32_t>(),
                           static_cast<int>(shape[1]),
                           shape[3] * shape[1],
                           shape.stride0(),
                           elements<T>(images));
  });
}

}  // namespace lockstep::kernels::cuda
