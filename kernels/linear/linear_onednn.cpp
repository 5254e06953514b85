#include "kernels/linear/linear.h"
#include "kernels/support/onednn/activations.h"
#include "kernels/support/onednn/shim.h"
#include "kernels/support/onednn/weights.h"
#include "kernels/support/shard_plans.h"

// Weights are not packed: reordering them to oneDNN's layouts costs more than it saves. 16 rows of
// 512 -> 1000 take 144 us as an inner product in its layout after a reorder of 895 us, and 191 us
// as a matmul on plain weights. For the gradients the inner product on plain weights is fastest.
namespace lockstep::kernels::onednn {
namespace {

struct LinearDescs {
  MemoryDesc in, weight, grad_weight, bias, out;
};

struct LinearPlan final : ActivationPlan {
  LinearPlan(Dtype stored, const LinearDescs& of, const dnnl::primitive_desc_base& desc)
      : ActivationPlan({stored, of.in}, {stored, of.out}, desc), descs(of) {}

  LinearDescs descs;
};

using LinearPlans = ShardPlans<LinearPlan>;

struct LinearGeometry {
  Dtype stored = Dtype::kF32;
  int64_t inputs = 0, outputs = 0;
  bool has_bias = false;

  PlanKey key(const char* op) const {
    return {.op = op,
            .values = {0, inputs, outputs, has_bias ? 1 : 0, static_cast<int64_t>(stored)}};
  }
  LinearDescs matmul_descs(int64_t images) const {
    const Dtype dtype = computing_type(stored);
    return {.in = desc_of({images, inputs}, dtype, Format::ab),
            .weight = desc_of({inputs, outputs}, dtype, Format::ba),
            .grad_weight = {},
            .bias = has_bias ? desc_of({1, outputs}, Dtype::kF32, Format::ab) : MemoryDesc(),
            .out = desc_of({images, outputs}, dtype, Format::ab)};
  }
  LinearDescs inner_product_descs(int64_t images) const {
    const Dtype dtype = computing_type(stored);
    return {.in = desc_of({images, inputs}, dtype, Format::ab),
            .weight = desc_of({outputs, inputs}, dtype, Format::ab),
            .grad_weight = desc_of({outputs, inputs}, Dtype::kF32, Format::ab),
            .bias = has_bias ? desc_of({outputs}, Dtype::kF32, Format::a) : MemoryDesc(),
            .out = desc_of({images, outputs}, dtype, Format::ab)};
  }
};

}  // namespace

void linear_forward(Stream& stream,
                    const Shards& shards,
                    const Tensor& in,
                    const Tensor& weight,
                    const Tensor& bias,
                    Tensor& out) {
  const LinearGeometry geometry{
      weight.dtype(), weight.shape()[1], weight.shape()[0], bias.defined()};
  const LinearPlans plans(stream, shards, geometry.key("linear_forward"), [&](int64_t images) {
    const LinearDescs descs = geometry.matmul_descs(images);
    return std::make_unique<LinearPlan>(
        geometry.stored, descs, matmul(descs.in, descs.weight, descs.bias, descs.out));
  });
  const Workspace workspace = stream.workspace(widened_bytes(weight), plans.largest(scratch_bytes));
  const std::byte* weights = widened(stream, weight, workspace.shared);
  stream.fork(shards.local(), [&](int64_t k, int worker) {
    if (shards.count(k) == 0) return;
    const LinearPlan& plan = plans[plans.find(shards.count(k))];
    std::byte* const scratch = workspace.of(worker);
    std::byte* const to = shard_rows(out, shards, k);
    Arguments arguments = {
        {DNNL_ARG_SRC, plan.in.input(shard_rows(in, shards, k), plan.staged_in(scratch))},
        {DNNL_ARG_WEIGHTS, memory_at(plan.descs.weight, weights)},
        {DNNL_ARG_DST, plan.out.output(to, plan.staged_out(scratch))}};
    if (bias.defined()) arguments.emplace(DNNL_ARG_BIAS, memory_at(plan.descs.bias, bias.bytes()));
    plan.primitive.execute(std::move(arguments), scratch);
    plan.out.finish(plan.staged_out(scratch), to);
  });
}

void linear_backward_data(Stream& stream,
                          const Shards& shards,
                          const Tensor& grad_out,
                          const Tensor& weight,
                          Tensor& grad_in) {
  const LinearGeometry geometry{weight.dtype(), weight.shape()[1], weight.shape()[0]};
  const LinearPlans plans(
      stream, shards, geometry.key("linear_backward_data"), [&](int64_t images) {
        const LinearDescs descs = geometry.inner_product_descs(images);
        return std::make_unique<LinearPlan>(
            geometry.stored, descs, inner_product_backward_data(descs.in, descs.weight, descs.out));
      });
  const Workspace workspace = stream.workspace(widened_bytes(weight), plans.largest(scratch_bytes));
  const std::byte* weights = widened(stream, weight, workspace.shared);
  stream.fork(shards.local(), [&](int64_t k, int worker) {
    if (shards.count(k) == 0) return;
    const LinearPlan& plan = plans[plans.find(shards.count(k))];
    std::byte* const scratch = workspace.of(worker);
    std::byte* const to = shard_rows(grad_in, shards, k);
    plan.primitive.execute(
        {{DNNL_ARG_DIFF_DST,
          plan.out.input(shard_rows(grad_out, shards, k), plan.staged_out(scratch))},
         {DNNL_ARG_WEIGHTS, memory_at(plan.descs.weight, weights)},
         {DNNL_ARG_DIFF_SRC, plan.in.output(to, plan.staged_in(scratch))}},
        scratch);
    plan.in.finish(plan.staged_in(scratch), to);
  });
}

void linear_backward_weight(Stream& stream,
                            const Shards& shards,
                            const Tensor& in,
                            const Tensor& grad_out,
                            Tensor& grad_weight,
                            Tensor& grad_bias) {
  const LinearGeometry geometry{
      in.dtype(), in.shape()[1], grad_out.shape()[1], grad_bias.defined()};
  const LinearPlans plans(
      stream, shards, geometry.key("linear_backward_weight"), [&](int64_t images) {
        const LinearDescs descs = geometry.inner_product_descs(images);
        return std::make_unique<LinearPlan>(
            geometry.stored,
            descs,
            inner_product_backward_weights(
                descs.in, descs.weight, descs.grad_weight, descs.bias, descs.out));
      });
  const Workspace workspace = stream.workspace(0, plans.largest(scratch_bytes));
  stream.fork(shards.local(), [&](int64_t k, int worker) {
    if (shards.count(k) == 0) {
      zero_leaf(grad_weight, k);
      zero_leaf(grad_bias, k);
      return;
    }
    const LinearPlan& plan = plans[plans.find(shards.count(k))];
    std::byte* const scratch = workspace.of(worker);
    Arguments arguments = {
        {DNNL_ARG_SRC, plan.in.input(shard_rows(in, shards, k), plan.staged_in(scratch))},
        {DNNL_ARG_DIFF_DST,
         plan.out.input(shard_rows(grad_out, shards, k), plan.staged_out(scratch))},
        {DNNL_ARG_DIFF_WEIGHTS, memory_at(plan.descs.grad_weight, shard_leaf(grad_weight, k))}};
    if (grad_bias.defined()) {
      arguments.emplace(DNNL_ARG_DIFF_BIAS, memory_at(plan.descs.bias, shard_leaf(grad_bias, k)));
    }
    plan.primitive.execute(std::move(arguments), scratch);
  });
}

}  // namespace lockstep::kernels::onednn
