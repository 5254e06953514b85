#include "kernels/support/cpu/widen.h"

#include "kernels/support/dispatch.h"

namespace lockstep::kernels {

void widen(Dtype stored, const std::byte* from, int64_t n, float* to) {
  LS_DISPATCH_CPU(widen, (stored, from, n, to))
}

void narrow(const float* from, int64_t n, Dtype stored, std::byte* to) {
  LS_DISPATCH_CPU(narrow, (from, n, stored, to))
}

}  // namespace lockstep::kernels
