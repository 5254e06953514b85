#include "kernels/optim/step_control.h"

#include <bit>

namespace lockstep::kernels {

Tensor lr_table_of(std::span<const double> lrs) {
  Tensor table = Tensor::empty({static_cast<int64_t>(lrs.size())}, Dtype::kI64);
  for (size_t i = 0; i < lrs.size(); ++i) table.data<int64_t>()[i] = std::bit_cast<int64_t>(lrs[i]);
  return table;
}

}  // namespace lockstep::kernels
