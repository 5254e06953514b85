#include <algorithm>
#include <utility>

#include "kernels/conv/conv2d.h"
#include "kernels/support/isa.h"
#include "kernels/support/onednn/activations.h"
#include "kernels/support/onednn/shim.h"
#include "kernels/support/onednn/weights.h"
#include "kernels/support/shard_plans.h"

namespace lockstep::kernels::onednn {
namespace {

// The layouts that a primitive prefers.
struct PreferredDescs {
  MemoryDesc in, weight, out;
};

struct Geometry {
  Dtype stored = Dtype::kF32;
  Shape in, weight;  // of the batch
  Conv2dParams params;
  bool has_bias = false;

  Dtype computing() const { return computing_type(stored); }

  PlanKey key(const char* op) const {
    return {.op = op,
            .values = {0,
                       in[1],
                       in[2],
                       in[3],
                       weight[0],
                       weight[2],
                       weight[3],
                       params.stride_h,
                       params.stride_w,
                       params.pad_h,
                       params.pad_w,
                       has_bias ? 1 : 0,
                       static_cast<int64_t>(stored),
                       params.groups}};
  }
  // The descriptors of one shard, with activations in NHWC.
  ConvolutionDescs descs(int64_t images) const {
    const Shape shard_in{images, in[1], in[2], in[3]};
    const Shape shard_out = conv2d_output_shape(shard_in, weight, params);
    return {.in = desc_of(shard_in, computing(), Format::nhwc),
            .weight = weights_desc(weight, params.groups, computing()),
            .grad_weight = weights_desc(weight, params.groups, Dtype::kF32),
            .bias = has_bias ? desc_of({weight[0]}, Dtype::kF32, Format::a) : MemoryDesc(),
            .out = desc_of(shard_out, computing(), Format::nhwc),
            .stride = {params.stride_h, params.stride_w},
            .pad = {params.pad_h, params.pad_w}};
  }
  // With one input channel, or with one vector of output channels, NHWC is the same in memory as an
  // older layout of oneDNN, which has better kernels for it: 1->16 5x5 on 16x28x28 takes 86 us
  // instead of 128 forward and 82 instead of 124 for the gradients of weights and bias, in bf16 81
  // instead of 134 forward. In other cases NHWC was within 5 % of any layout.
  ConvolutionDescs descs_of_same_memory(int64_t images) const {
    ConvolutionDescs same = descs(images);
    if (in[1] == 1 && weight[0] == 16 && isa_level() == IsaLevel::kV4) {
      const Shape shard_in{images, in[1], in[2], in[3]};
      same.in = desc_of(shard_in, computing(), Format::nchw);
      same.out =
          desc_of(conv2d_output_shape(shard_in, weight, params), computing(), Format::nChw16c);
    }
    return same;
  }
  // Bytes behind its scratchpad that oneDNN may overwrite. Its 1x1 convolutions with a stride
  // address it by whole vectors of channels, but ask for memory of the real ones. oneDNN's issue
  // 6035, found in the gradient of weights, in all versions until 2026.
  size_t overrun_bytes() const {
    const bool strided = params.stride_h > 1 || params.stride_w > 1;
    const int64_t lanes = isa_level() == IsaLevel::kV4 ? 16 : 8;
    if (weight[2] != 1 || weight[3] != 1 || !strided || weight[1] >= lanes) return 0;
    const Shape out = conv2d_output_shape(in, weight, params);
    return static_cast<size_t>(out[2] * out[3] * (lanes - weight[1])) * sizeof(float);
  }
  // Winograd's algorithm takes at most half the time of the direct one if there are enough pixels
  // to make up for transforming the weights: 64->64 3x3 on 16x56x56 takes 26 ms instead of 70.
  bool suits_winograd(int64_t images) const {
    const bool unit = params.stride_h == 1 && params.stride_w == 1 && params.pad_h == 1 &&
                      params.pad_w == 1 && weight[2] == 3 && weight[3] == 3;
    const auto wide = [](int64_t channels) { return channels >= 32 && channels % 16 == 0; };
    return computing() == Dtype::kF32 && unit && params.groups == 1 && wide(weight[0]) &&
           wide(weight[1]) && images * in[2] * in[3] >= 512 && offers_winograd();
  }
  // The descriptors with which the primitive is created, given those that need no staging.
  ConvolutionDescs wanted(ConvolutionDescs plain, int64_t images) const {
    if (!suits_winograd(images)) return plain;
    const auto any = [](const MemoryDesc& desc) {
      return MemoryDesc(desc.dims(), desc.data_type(), Format::any);
    };
    plain.in = any(plain.in);
    plain.out = any(plain.out);
    plain.algorithm = dnnl::algorithm::convolution_winograd;
    return plain;
  }
};

// A convolution or one of its gradients on one shard's shape. `packed` is the layout of the weights
// (or their gradient) that the primitive prefers.
struct ConvolutionPlan final : ActivationPlan {
  // `plain` describes activations as tensors hold them.
  ConvolutionPlan(const Geometry& geometry,
                  const ConvolutionDescs& plain,
                  const PreferredDescs& preferred,
                  const dnnl::primitive_desc_base& desc)
      : ActivationPlan({geometry.stored, plain.in, preferred.in},
                       {geometry.stored, plain.out, preferred.out},
                       desc,
                       geometry.overrun_bytes()),
        bias(plain.bias),
        packed(preferred.weight),
        layout(geometry.weight, geometry.params.groups, preferred.weight) {}

  MemoryDesc bias, packed;
  WeightLayout layout;
};

using ConvolutionPlans = ShardPlans<ConvolutionPlan>;

size_t packed_bytes(const ConvolutionPlan& plan) {
  return aligned(plan.packed.get_size());
}

// Workspace of a call that reads weights: all plans' packed weights, the widened weights if they
// are packed from those, and scratch memory per worker.
Workspace workspace_for_packed(Stream& stream,
                               const ConvolutionPlans& plans,
                               const Tensor& weight) {
  size_t shared = widened_bytes(weight);
  for (size_t i = 0; i < plans.size(); ++i) shared += packed_bytes(plans[i]);
  return stream.workspace(shared, plans.largest(scratch_bytes));
}

// The weights in each plan's layout, in the workspace's shared part.
std::vector<dnnl::memory> pack(Stream& stream,
                               const ConvolutionPlans& plans,
                               const Tensor& weight,
                               const Workspace& workspace) {
  const Dtype dtype = computing_type(weight.dtype());
  const std::byte* from = widened(stream, weight, workspace.shared);
  std::vector<dnnl::memory> packed;
  std::byte* to = workspace.shared + widened_bytes(weight);
  for (size_t i = 0; i < plans.size(); to += packed_bytes(plans[i]), ++i) {
    const WeightLayout& layout = plans[i].layout;
    packed.push_back(memory_at(plans[i].packed, to));
    stream.fork(layout.pieces(), [&](int64_t piece, int) { layout.pack(piece, dtype, from, to); });
  }
  return packed;
}

}  // namespace

void conv2d_forward(Stream& stream, const Shards& shards, const Conv2dForwardArgs& args) {
  const Tensor &in = args.in, &weight = args.weight, &bias = args.bias;
  const Geometry geometry{in.dtype(), in.shape(), weight.shape(), args.params, bias.defined()};
  const ConvolutionPlans plans(stream, shards, geometry.key("conv2d_forward"), [&](int64_t images) {
    const ConvolutionDescs plain = geometry.descs_of_same_memory(images);
    const auto desc = convolution_forward(geometry.wanted(plain, images));
    const PreferredDescs preferred{desc.src_desc(), desc.weights_desc(), desc.dst_desc()};
    return std::make_unique<ConvolutionPlan>(geometry, plain, preferred, desc);
  });
  const Workspace workspace = workspace_for_packed(stream, plans, weight);
  const auto packed = pack(stream, plans, weight, workspace);
  stream.fork(shards.local(), [&](int64_t k, int worker) {
    if (shards.count(k) == 0) return;
    const size_t i = plans.find(shards.count(k));
    const ConvolutionPlan& plan = plans[i];
    std::byte* const scratch = workspace.of(worker);
    std::byte* const to = shard_rows(args.out, shards, k);
    Arguments arguments = {
        {DNNL_ARG_SRC, plan.in.input(shard_rows(in, shards, k), plan.staged_in(scratch))},
        {DNNL_ARG_WEIGHTS, packed[i]},
        {DNNL_ARG_DST, plan.out.output(to, plan.staged_out(scratch))}};
    if (bias.defined()) arguments.emplace(DNNL_ARG_BIAS, memory_at(plan.bias, bias.bytes()));
    plan.primitive.execute(std::move(arguments), scratch);
    plan.out.finish(plan.staged_out(scratch), to);
  });
}

void conv2d_backward_data(Stream& stream,
                          const Shards& shards,
                          const Tensor& grad_out,
                          const Tensor& weight,
                          const Conv2dParams& params,
                          Tensor& grad_in) {
  const Geometry geometry{grad_in.dtype(), grad_in.shape(), weight.shape(), params};
  const ConvolutionPlans plans(
      stream, shards, geometry.key("conv2d_backward_data"), [&](int64_t images) {
        const ConvolutionDescs plain = geometry.descs(images);
        const auto desc = convolution_backward_data(geometry.wanted(plain, images));
        const PreferredDescs preferred{
            desc.diff_src_desc(), desc.weights_desc(), desc.diff_dst_desc()};
        return std::make_unique<ConvolutionPlan>(geometry, plain, preferred, desc);
      });
  const Workspace workspace = workspace_for_packed(stream, plans, weight);
  const auto packed = pack(stream, plans, weight, workspace);
  stream.fork(shards.local(), [&](int64_t k, int worker) {
    if (shards.count(k) == 0) return;
    const size_t i = plans.find(shards.count(k));
    const ConvolutionPlan& plan = plans[i];
    std::byte* const scratch = workspace.of(worker);
    std::byte* const to = shard_rows(grad_in, shards, k);
    plan.primitive.execute(
        {{DNNL_ARG_DIFF_DST,
          plan.out.input(shard_rows(grad_out, shards, k), plan.staged_out(scratch))},
         {DNNL_ARG_WEIGHTS, packed[i]},
         {DNNL_ARG_DIFF_SRC, plan.in.output(to, plan.staged_in(scratch))}},
        scratch);
    plan.in.finish(plan.staged_in(scratch), to);
  });
}

void conv2d_backward_weight(Stream& stream,
                            const Shards& shards,
                            const Conv2dBackwardWeightArgs& args) {
  const Tensor& in = args.in;
  const Shape& weight = args.weight_shape;
  Tensor grad_bias = args.bias_gradient();
  const Geometry geometry{in.dtype(), in.shape(), weight, args.params, grad_bias.defined()};
  const ConvolutionPlans plans(
      stream, shards, geometry.key("conv2d_backward_weight"), [&](int64_t images) {
        const ConvolutionDescs plain = geometry.descs_of_same_memory(images);
        const auto desc = convolution_backward_weights(geometry.wanted(plain, images));
        const PreferredDescs preferred{
            desc.src_desc(), desc.diff_weights_desc(), desc.diff_dst_desc()};
        return std::make_unique<ConvolutionPlan>(geometry, plain, preferred, desc);
      });
  const size_t most_packed = plans.largest(packed_bytes);
  const Workspace workspace = stream.workspace(0, most_packed + plans.largest(scratch_bytes));
  stream.fork(shards.local(), [&](int64_t k, int worker) {
    if (shards.count(k) == 0) {
      zero_leaf(args.grad_weight, k);
      zero_leaf(grad_bias, k);
      return;
    }
    const ConvolutionPlan& plan = plans[plans.find(shards.count(k))];
    std::byte* const packed = workspace.of(worker);
    std::byte* const scratch = packed + most_packed;
    Arguments arguments = {
        {DNNL_ARG_SRC, plan.in.input(shard_rows(in, shards, k), plan.staged_in(scratch))},
        {DNNL_ARG_DIFF_DST,
         plan.out.input(shard_rows(args.grad_out, shards, k), plan.staged_out(scratch))},
        {DNNL_ARG_DIFF_WEIGHTS, memory_at(plan.packed, packed)}};
    if (grad_bias.defined()) {
      arguments.emplace(DNNL_ARG_DIFF_BIAS, memory_at(plan.bias, shard_leaf(grad_bias, k)));
    }
    plan.primitive.execute(std::move(arguments), scratch);
    plan.layout.unpack(reinterpret_cast<const float*>(packed), shard_leaf(args.grad_weight, k));
  });
}

}  // namespace lockstep::kernels::onednn
