#include "kernels/support/cpu/float_line.h"
#include "kernels/support/cpu/widen.h"

namespace lockstep::kernels::LS_CPU {

void widen(Dtype stored, const std::byte* from, int64_t n, float* to) {
  if (stored == Dtype::kF16) return convert(reinterpret_cast<const Half*>(from), n, to);
  convert(reinterpret_cast<const BFloat16*>(from), n, to);
}

void narrow(const float* from, int64_t n, Dtype stored, std::byte* to) {
  if (stored == Dtype::kF16) return convert(from, n, reinterpret_cast<Half*>(to));
  convert(from, n, reinterpret_cast<BFloat16*>(to));
}

}  // namespace lockstep::kernels::LS_CPU
