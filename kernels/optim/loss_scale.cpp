#include "kernels/optim/loss_scale.h"

#include <cstring>

#include "core/transfer.h"
#include "kernels/support/dispatch.h"

namespace lockstep::kernels {
namespace {

void check_state(const OpCheck& check, const Tensor& state) {
  check.like("state", state, {kLossScaleStateBytes}, Dtype::kU8);
}

}  // namespace

void loss_scale_init(Stream& stream, const LossScaleState& initial, Tensor& state) {
  const OpCheck check("loss_scale_init", stream);
  check_state(check, state);
  if (check.dry(0, kLossScaleStateBytes)) return;
  LS_DISPATCH(loss_scale_init, (stream, initial, state))
}

void loss_scale_seed(Stream& stream, const Tensor& state, Tensor& seeds) {
  const OpCheck check("loss_scale_seed", stream);
  check_state(check, state);
  check.rank("seeds", seeds, 1);
  check.dtype("seeds", seeds, {Dtype::kF32});
  if (check.dry(0, bytes_of(seeds))) return;
  LS_DISPATCH(loss_scale_seed, (stream, state, seeds))
}

void check_finite(Stream& stream, std::span<const Tensor> buckets, Tensor& state) {
  const OpCheck check("check_finite", stream);
  check_state(check, state);
  size_t bytes = 0;
  for (const Tensor& bucket : buckets) {
    check.floating("bucket", bucket);
    bytes += bucket.nbytes();
  }
  if (check.dry(0, static_cast<int64_t>(bytes))) return;
  LS_DISPATCH(check_finite, (stream, buckets, state))
}

void loss_scale_update(Stream& stream, const LossScaleRule& rule, Tensor& state) {
  const OpCheck check("loss_scale_update", stream);
  check_state(check, state);
  check.require(rule.growth_factor > 1, "growth_factor > 1");
  check.require(rule.backoff_factor > 0 && rule.backoff_factor < 1, "0 < backoff_factor < 1");
  check.require(rule.growth_interval >= 1, "growth_interval >= 1");
  if (check.dry(0, 2 * kLossScaleStateBytes)) return;
  LS_DISPATCH(loss_scale_update, (stream, rule, state))
}

LossScaleState read_loss_scale(Stream& stream, const Tensor& state) {
  const OpCheck check("read_loss_scale", stream);
  check_state(check, state);
  const Tensor on_cpu = to_cpu(stream, state);
  LossScaleState read;
  std::memcpy(&read, on_cpu.bytes(), sizeof(read));
  return read;
}

}  // namespace lockstep::kernels
