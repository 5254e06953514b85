#include "bench/kernels/op_bench.h"
#include "kernels/loss/binary_cross_entropy.h"
#include "kernels/loss/softmax_cross_entropy.h"

namespace lockstep::bench {
namespace {

// The class counts of MNIST and ImageNet; on CUDA with enough images to be memory-bound.
const Cases kCases{.cpu = {kF32, {{32, 10}, {32, 1000}}},
                   .cuda = {kFloatTypes, {{256, 1000}, {65536, 1000}}}};

struct Loss {
  explicit Loss(Timer& t)
      : shards(t.shards()),
        logits(t.random(t.shape(), t.dtype())),
        labels(t.random_indices({t[0]}, static_cast<int32_t>(t[1]))) {}

  Shards shards;
  Tensor logits, labels;
};

const Bench kForward("softmax_cross_entropy_forward", kCases, [](Timer& t) {
  const Loss l(t);
  Tensor losses = t.empty({t[0]}, Dtype::kF32);
  Tensor ranks = t.empty({t[0]}, Dtype::kI32);
  Tensor leaves = t.empty({l.shards.local()}, Dtype::kF32);
  t.run(l.logits.nbytes() + 3 * l.labels.nbytes(), [&] {
    kernels::softmax_cross_entropy_forward(
        t.stream(), l.shards, {l.logits, l.labels}, losses, ranks, leaves);
  });
});

const Bench kBackward("softmax_cross_entropy_backward", kCases, [](Timer& t) {
  const Loss l(t);
  const Tensor grad_loss = t.random_f32({l.shards.local()});
  Tensor grad_logits = t.empty(t.shape(), t.dtype());
  t.run(2 * l.logits.nbytes() + l.labels.nbytes(), [&] {
    kernels::softmax_cross_entropy_backward(
        t.stream(), l.shards, {l.logits, l.labels}, grad_loss, grad_logits);
  });
});

const Bench kBinaryForward("binary_cross_entropy_forward", kCases, [](Timer& t) {
  const Loss l(t);
  Tensor losses = t.empty({t[0]}, Dtype::kF32);
  Tensor ranks = t.empty({t[0]}, Dtype::kI32);
  Tensor leaves = t.empty({l.shards.local()}, Dtype::kF32);
  t.run(l.logits.nbytes() + 3 * l.labels.nbytes(), [&] {
    kernels::binary_cross_entropy_forward(
        t.stream(), l.shards, {l.logits, l.labels}, losses, ranks, leaves);
  });
});

const Bench kBinaryBackward("binary_cross_entropy_backward", kCases, [](Timer& t) {
  const Loss l(t);
  const Tensor grad_loss = t.random_f32({l.shards.local()});
  Tensor grad_logits = t.empty(t.shape(), t.dtype());
  t.run(2 * l.logits.nbytes() + l.labels.nbytes(), [&] {
    kernels::binary_cross_entropy_backward(
        t.stream(), l.shards, {l.logits, l.labels}, grad_loss, grad_logits);
  });
});

}  // namespace
}  // namespace lockstep::bench
