#include "kernels/linear.h"
#include "kernels/onednn_shim.h"
#include "kernels/shard_plans.h"

// Weights stay as they are: oneDNN's own layouts cost more to reorder than they save. 16 rows of
// 512 -> 1000 take 144 us as an inner product in its layout after a reorder of 895 us, and 191 us
// as a matmul on plain weights. For the gradients the inner product on plain weights is fastest.
namespace lockstep::kernels::onednn {
namespace {

struct LinearDescs {
  MemoryDesc in, weight, bias, out;
};

struct LinearPlan final : Plan {
  LinearPlan(const LinearDescs& of, const dnnl::primitive_desc_base& desc)
      : descs(of), product(desc) {}

  LinearDescs descs;
  Primitive product;
};

using LinearPlans = ShardPlans<LinearPlan>;

struct Geometry {
  int64_t inputs = 0, outputs = 0;
  bool has_bias = false;

  PlanKey key(const char* op) const {
    return {.op = op, .values = {0, inputs, outputs, has_bias ? 1 : 0}};
  }
  LinearDescs matmul_descs(int64_t images) const {
    return {.in = f32_desc({images, inputs}, Format::ab),
            .weight = f32_desc({inputs, outputs}, Format::ba),
            .bias = has_bias ? f32_desc({1, outputs}, Format::ab) : MemoryDesc(),
            .out = f32_desc({images, outputs}, Format::ab)};
  }
  LinearDescs inner_product_descs(int64_t images) const {
    return {.in = f32_desc({images, inputs}, Format::ab),
            .weight = f32_desc({outputs, inputs}, Format::ab),
            .bias = has_bias ? f32_desc({outputs}, Format::a) : MemoryDesc(),
            .out = f32_desc({images, outputs}, Format::ab)};
  }
};

Workspace workspace_for(Stream& stream, const LinearPlans& plans) {
  return stream.workspace(
      0, plans.largest([](const LinearPlan& plan) { return plan.product.scratchpad_bytes(); }));
}

}  // namespace

void linear_forward(Stream& stream,
                    const Shards& shards,
                    const Tensor& in,
                    const Tensor& weight,
                    const Tensor& bias,
                    Tensor& out) {
  const Geometry geometry{weight.shape()[1], weight.shape()[0], bias.defined()};
  const LinearPlans plans(stream, shards, geometry.key("linear_forward"), [&](int64_t images) {
    const LinearDescs descs = geometry.matmul_descs(images);
    return std::make_unique<LinearPlan>(descs,
                                        matmul(descs.in, descs.weight, descs.bias, descs.out));
  });
  const Workspace workspace = workspace_for(stream, plans);
  stream.fork(shards.local(), [&](int64_t k, int worker) {
    if (shards.count(k) == 0) return;
    const LinearPlan& plan = plans[plans.find(shards.count(k))];
    Arguments arguments = {{DNNL_ARG_SRC, bind(plan.descs.in, shard_rows(in, shards, k))},
                           {DNNL_ARG_WEIGHTS, bind(plan.descs.weight, weight.bytes())},
                           {DNNL_ARG_DST, bind(plan.descs.out, shard_rows(out, shards, k))}};
    if (bias.defined()) arguments.emplace(DNNL_ARG_BIAS, bind(plan.descs.bias, bias.bytes()));
    plan.product.execute(std::move(arguments), workspace.of(worker));
  });
}

void linear_backward_data(Stream& stream,
                          const Shards& shards,
                          const Tensor& grad_out,
                          const Tensor& weight,
                          Tensor& grad_in) {
  const Geometry geometry{weight.shape()[1], weight.shape()[0]};
  const LinearPlans plans(
      stream, shards, geometry.key("linear_backward_data"), [&](int64_t images) {
        const LinearDescs descs = geometry.inner_product_descs(images);
        return std::make_unique<LinearPlan>(
            descs, inner_product_backward_data(descs.in, descs.weight, descs.out));
      });
  const Workspace workspace = workspace_for(stream, plans);
  stream.fork(shards.local(), [&](int64_t k, int worker) {
    if (shards.count(k) == 0) return;
    const LinearPlan& plan = plans[plans.find(shards.count(k))];
    plan.product.execute(
        {{DNNL_ARG_DIFF_DST, bind(plan.descs.out, shard_rows(grad_out, shards, k))},
         {DNNL_ARG_WEIGHTS, bind(plan.descs.weight, weight.bytes())},
         {DNNL_ARG_DIFF_SRC, bind(plan.descs.in, shard_rows(grad_in, shards, k))}},
        workspace.of(worker));
  });
}

void linear_backward_weight(Stream& stream,
                            const Shards& shards,
                            const Tensor& in,
                            const Tensor& grad_out,
                            Tensor& grad_weight,
                            Tensor& grad_bias) {
  const Geometry geometry{in.shape()[1], grad_out.shape()[1], grad_bias.defined()};
  const LinearPlans plans(
      stream, shards, geometry.key("linear_backward_weight"), [&](int64_t images) {
        const LinearDescs descs = geometry.inner_product_descs(images);
        return std::make_unique<LinearPlan>(
            descs, inner_product_backward_weights(descs.in, descs.weight, descs.bias, descs.out));
      });
  const Workspace workspace = workspace_for(stream, plans);
  stream.fork(shards.local(), [&](int64_t k, int worker) {
    if (shards.count(k) == 0) {
      zero_leaf(grad_weight, k);
      zero_leaf(grad_bias, k);
      return;
    }
    const LinearPlan& plan = plans[plans.find(shards.count(k))];
    Arguments arguments = {
        {DNNL_ARG_SRC, bind(plan.descs.in, shard_rows(in, shards, k))},
        {DNNL_ARG_DIFF_DST, bind(plan.descs.out, shard_rows(grad_out, shards, k))},
        {DNNL_ARG_DIFF_WEIGHTS, bind(plan.descs.weight, shard_leaf(grad_weight, k))}};
    if (grad_bias.defined()) {
      arguments.emplace(DNNL_ARG_DIFF_BIAS, bind(plan.descs.bias, shard_leaf(grad_bias, k)));
    }
    plan.product.execute(std::move(arguments), workspace.of(worker));
  });
}

}  // namespace lockstep::kernels::onednn
