#include "kernels/reduce/nonfinite_rows.h"
#include "kernels/support/cpu/cpu_loops.h"

namespace lockstep::kernels::LS_CPU {
namespace {

// Few enough that a 16-bit counter cannot overflow, which keeps counters as wide as 16-bit
// elements.
constexpr int64_t kPiece = 32768;

template <class T>
int32_t count_not_finite(const T* values, int64_t count) {
  using Count = decltype(nonfinite_flag(T()));
  int32_t sum = 0;
  for (int64_t first = 0; first < count; first += kPiece) {
    const int64_t end = std::min(count, first + kPiece);
    Count found = 0;
    for (int64_t i = first; i < end; ++i) {
      found = static_cast<Count>(found + nonfinite_flag(values[i]));
    }
    sum += static_cast<int32_t>(found);
  }
  return sum;
}

}  // namespace

void nonfinite_rows(Stream& stream, const Tensor& in, Tensor& counts) {
  const int64_t length = in.shape().stride0();
  int32_t* to = counts.data<int32_t>();
  dispatch_float(in.dtype(), [&]<class T>() {
    const T* from = in.data<T>();
    stream.fork(counts.numel(),
                [=](int64_t row, int) { to[row] = count_not_finite(from + row * length, length); });
  });
}

}  // namespace lockstep::kernels::LS_CPU
