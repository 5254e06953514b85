#include "bench/kernels/op_bench.h"
#include "kernels/image/normalize_image.h"

namespace lockstep::bench {
namespace {

const Cases kCases{.cpu = {kF32, {{32, 1, 28, 28}, {32, 3, 224, 224}}},
                   .cuda = {kFloatTypes, {{256, 3, 224, 224}}}};

const Bench kBench("normalize_image", kCases, [](Timer& t) {
  const Tensor in = Tensor::zeros(t.shape(), Dtype::kU8, t.stream().device());
  Tensor out = t.empty(t.shape(), t.dtype());
  const auto channels = static_cast<size_t>(t[1]);
  const kernels::NormalizeImageParams params = {.mean = std::vector(channels, 0.5F),
                                                .std = std::vector(channels, 0.25F)};
  t.run(in.nbytes() + out.nbytes(),
        [&] { kernels::normalize_image(t.stream(), t.shards(), in, params, out); });
});

}  // namespace
}  // namespace lockstep::bench
