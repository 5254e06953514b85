#include "kernels/elementwise/channel_gate.h"

#include "kernels/support/dispatch.h"

namespace lockstep::kernels {
namespace {

void check_shapes(const OpCheck& check,
                  const Shards& shards,
                  const Tensor& in,
                  const Tensor& gate) {
  check.rank("in", in, 4);
  check.floating("in", in);
  check.covers(shards, in.shape()[0]);
  check.like("gate", gate, {in.shape()[0], in.shape()[1]}, in.dtype());
}

}  // namespace

void channel_gate_forward(Stream& stream,
                          const Shards& shards,
                          const Tensor& in,
                          const Tensor& gate,
                          GateForm form,
                          Tensor& out) {
  const OpCheck check("channel_gate_forward", stream);
  check_shapes(check, shards, in, gate);
  check.like("out", out, in.shape(), in.dtype());
  if (check.dry(in.numel(), bytes_of(in, out, gate))) return;
  LS_DISPATCH(channel_gate_forward, (stream, shards, in, gate, form, out))
}

void channel_gate_backward(Stream& stream,
                           const Shards& shards,
                           const ChannelGateBackwardArgs& args) {
  const OpCheck check("channel_gate_backward", stream);
  const Tensor &in = args.in, &gate = args.gate;
  check_shapes(check, shards, in, gate);
  check.like("grad_out", args.grad_out, in.shape(), in.dtype());
  check.like("grad_in", args.grad_in, in.shape(), in.dtype());
  check.like("grad_gate", args.grad_gate, gate.shape(), in.dtype());
  if (check.dry(3 * in.numel(), bytes_of(args.grad_out, in, args.grad_in, gate, args.grad_gate)))
    return;
  LS_DISPATCH(channel_gate_backward, (stream, shards, args))
}

}  // namespace lockstep::kernels
