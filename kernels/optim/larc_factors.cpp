#include "kernels/optim/larc_factors.h"

#include "kernels/optim/optimizer_check.h"
#include "kernels/support/dispatch.h"

namespace lockstep::kernels {

void larc_factors(Stream& stream,
                  const Tensor& norms,
                  const Tensor& weight_decays,
                  const LarcParams& params,
                  Tensor& factors) {
  const OpCheck check("larc_factors", stream);
  check.rank("factors", factors, 1);
  const int64_t n = factors.numel();
  check.require(n >= 1, "a factor");
  check.require(params.trust > 0, "trust > 0");
  check_control(check, params.control);
  check.like("factors", factors, {n}, Dtype::kF32);
  check.like("norms", norms, {2 * n + 1}, Dtype::kF32);
  check.like("weight_decays", weight_decays, {n}, Dtype::kF32);
  if (check.dry(6 * n, 4 * n * static_cast<int64_t>(sizeof(float)))) return;
  LS_DISPATCH(larc_factors, (stream, norms, weight_decays, params, factors))
}

}  // namespace lockstep::kernels
