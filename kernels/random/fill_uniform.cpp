#include "kernels/random/fill_uniform.h"

#include <cmath>

#include <fmt/core.h>

#include "kernels/random/uniform_range.h"
#include "kernels/support/dispatch.h"
#include "kernels/support/op_check.h"

namespace lockstep::kernels {

void fill_uniform(Stream& stream, const FillUniformParams& params, Tensor& out) {
  const OpCheck check("fill_uniform", stream);
  check.floating("out", out);
  const float width = uniform_range(out.dtype(), params.low, params.high).width;
  check.require(width > 0 && std::isfinite(width),
                fmt::format("low < high, finite in {}: got {} and {}",
                            name_of(out.dtype()),
                            params.low,
                            params.high));
  constexpr int64_t kOperationsOfADraw = 20;  // a block's ten rounds of eight, for four
  if (check.dry(kOperationsOfADraw * out.numel(), static_cast<int64_t>(out.nbytes()))) return;
  LS_DISPATCH(fill_uniform, (stream, params, out))
}

}  // namespace lockstep::kernels
