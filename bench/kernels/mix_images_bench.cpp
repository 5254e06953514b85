#include "bench/kernels/op_bench.h"
#include "kernels/image/mix_images.h"

namespace lockstep::bench {
namespace {

const Cases kCases{.cpu = {kF32, {{64, 3, 32, 32}, {32, 3, 224, 224}}},
                   .cuda = {{Dtype::kF32, Dtype::kF16}, {{256, 3, 224, 224}}}};

const Bench kBench("mix_images", kCases, [](Timer& t) {
  const Tensor mix = t.random({1}, Dtype::kF32, 0);
  Tensor images = t.random(t.shape(), t.dtype());
  t.run(2 * images.nbytes(), [&] { kernels::mix_images(t.stream(), t.shards(), mix, images); });
});

}  // namespace
}  // namespace lockstep::bench
