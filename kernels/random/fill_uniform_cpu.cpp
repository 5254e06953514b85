#include "kernels/random/fill_uniform.h"
#include "kernels/support/cpu/cpu_loops.h"
#include "kernels/support/cpu/float_line.h"

namespace lockstep::kernels::LS_CPU {
namespace {

// Draws a line of numbers, from the blocks that begin with `first`.
[[gnu::always_inline]] inline void draw_line(const FillUniformParams& params,
                                             const UniformRange& range,
                                             int64_t first,
                                             float* line) {
  for (int64_t block = 0; block < kLineLanes / 4; ++block) {
    const PhiloxBlock draws = philox_block(
        params.seed, params.purpose, params.epoch, static_cast<uint64_t>(first + block), 0);
    for (int64_t i = 0; i < 4; ++i) line[4 * block + i] = range.at(draws.words[i]);
  }
}

}  // namespace

void fill_uniform(Stream& stream, const FillUniformParams& params, Tensor& out) {
  const UniformRange range = uniform_range(out.dtype(), params.low, params.high);
  dispatch_float(out.dtype(), [&]<class T>() {
    T* to = out.data<T>();
    for_ranges(stream, out.numel(), [=, &params](int64_t begin, int64_t end) {
      float line[kLineLanes];
      for (int64_t i = begin; i < end; i += kLineLanes) {
        draw_line(params, range, i / 4, line);
        convert(line, std::min(kLineLanes, end - i), to + i);
      }
    });
  });
}

}  // namespace lockstep::kernels::LS_CPU
