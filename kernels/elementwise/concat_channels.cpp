#include "kernels/elementwise/concat_channels.h"

#include "kernels/support/dispatch.h"

namespace lockstep::kernels {
namespace {

struct Names {
  std::string_view a, b, whole;
};

// Checks a call and declares its cost on the dry device. Returns true when there is nothing to run.
bool checked(const OpCheck& check,
             const Shards& shards,
             const Names& names,
             const Tensor& a,
             const Tensor& b,
             const Tensor& whole) {
  check.rank(names.a, a, 4);
  check.rank(names.b, b, 4);
  check.floating(names.a, a);
  const Shape& first = a.shape();
  const int64_t others = b.shape()[1];
  check.covers(shards, first[0]);
  check.like(names.b, b, {first[0], others, first[2], first[3]}, a.dtype());
  check.like(names.whole, whole, {first[0], first[1] + others, first[2], first[3]}, a.dtype());
  return check.dry(0, static_cast<int64_t>(2 * whole.nbytes()));
}

}  // namespace

void concat_channels_forward(
    Stream& stream, const Shards& shards, const Tensor& a, const Tensor& b, Tensor& out) {
  const OpCheck check("concat_channels_forward", stream);
  if (checked(check, shards, {"a", "b", "out"}, a, b, out)) return;
  LS_DISPATCH(concat_channels_forward, (stream, shards, a, b, out))
}

void concat_channels_backward(
    Stream& stream, const Shards& shards, const Tensor& grad_out, Tensor& grad_a, Tensor& grad_b) {
  const OpCheck check("concat_channels_backward", stream);
  if (checked(check, shards, {"grad_a", "grad_b", "grad_out"}, grad_a, grad_b, grad_out)) return;
  LS_DISPATCH(concat_channels_backward, (stream, shards, grad_out, grad_a, grad_b))
}

}  // namespace lockstep::kernels
