#include <numeric>

#include "bench/kernels/op_bench.h"
#include "core/transfer.h"
#include "kernels/image/normalize_image.h"

namespace lockstep::bench {
namespace {

const Cases kCases{
    .cpu = {kF32, {{128, 3, 32, 32}, {32, 3, 224, 224}}},
    .cuda = {kFloatTypes, {{128, 3, 32, 32}, {4096, 3, 32, 32}, {256, 3, 224, 224}}}};

const kernels::CropFlipNormalizeParams kParams = {
    .augmentation = {.pad = 4, .flip = true},
    .normalize = {.mean = std::vector(3, 0.5F), .std = std::vector(3, 0.25F)}};

const Bench kBench("crop_flip_normalize", kCases, [](Timer& t) {
  const Tensor in = Tensor::zeros(t.shape(), Dtype::kU8, t.stream().device());
  Tensor counted = Tensor::empty({t[0]}, Dtype::kI64);
  std::iota(counted.span<int64_t>().begin(), counted.span<int64_t>().end(), int64_t{0});
  const Tensor indices = to_device(t.stream(), counted);
  Tensor out = t.empty(in.shape(), t.dtype());
  t.run(in.nbytes() + out.nbytes(),
        [&] { kernels::crop_flip_normalize(t.stream(), t.shards(), in, indices, kParams, out); });
});

}  // namespace
}  // namespace lockstep::bench
