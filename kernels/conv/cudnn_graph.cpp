#include "kernels/conv/cudnn_graph.h"

#include <array>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace lockstep::kernels::cudnn {
namespace {

constexpr int64_t kTensorAlignment = 16;  // bytes

cudnnDataType_t data_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF32:
      return CUDNN_DATA_FLOAT;
    case Dtype::kF16:
      return CUDNN_DATA_HALF;
    case Dtype::kBF16:
      return CUDNN_DATA_BFLOAT16;
    default:
      throw DtypeError(fmt::format("[cudnn] dtype: got {}, expected a float", name_of(dtype)));
  }
}

struct TensorOptions {
  Dtype dtype = Dtype::kF32;
  bool is_virtual = false;  // passed between two operations, never in memory
};

// A tensor descriptor, channels last.
Descriptor tensor(TensorId id, const Shape& shape, const TensorOptions& options) {
  const std::array<int64_t, 4> extents = {shape[0], shape[1], shape[2], shape[3]};
  const std::array<int64_t, 4> strides = {shape.stride0(), 1, shape[1] * shape[3], shape[1]};
  Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, int64_t{id})
      .set(CUDNN_ATTR_TENSOR_DATA_TYPE, data_type(options.dtype))
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kTensorAlignment)
      .set_all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS, extents)
      .set_all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES, strides)
      .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, options.is_virtual);
  return made.finalize();
}

Descriptor convolution(const Conv2dParams& params) {
  const std::array<int64_t, 2> dilations = {1, 1};
  const std::array<int64_t, 2> strides = {params.stride_h, params.stride_w};
  const std::array<int64_t, 2> pads = {params.pad_h, params.pad_w};
  Descriptor made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  made.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{2})
      .set_all<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS, dilations)
      .set_all<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, strides)
      .set_all<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, pads)
      .set_all<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, pads);
  return made.finalize();
}

// The names of the attributes of one of the three convolution operations.
struct Operation {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t convolution, in, weight, out, alpha, beta;
};

Operation operation_of(ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::kForward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case ConvolutionPass::kBackwardData:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case ConvolutionPass::kBackwardWeight:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  }
  throw InternalError("[cudnn] unknown pass");
}

// In a forward pass, `in` and `out` may be connected to other operations.
Descriptor convolution_operation(const ConvolutionProblem& problem,
                                 const Descriptor& in,
                                 const Descriptor& out) {
  const Operation names = operation_of(problem.pass);
  Descriptor made(names.type);
  made.set(names.convolution, convolution(problem.params))
      .set(names.in, in)
      .set(names.weight, tensor(kWeight, problem.weight, {.dtype = problem.dtype}))
      .set(names.out, out)
      .set(names.alpha, 1.0F)
      .set(names.beta, 0.0F);
  return made.finalize();
}

// to = mode(from, with); `with` is null for a unary function.
Descriptor pointwise_operation(cudnnPointwiseMode_t mode,
                               const Descriptor& from,
                               const Descriptor* with,
                               const Descriptor& to) {
  Descriptor function(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  function.set(CUDNN_ATTR_POINTWISE_MODE, mode)
      .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT)
      .finalize();
  Descriptor made(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, from)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to);
  if (with != nullptr) made.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *with);
  return made.finalize();
}

Descriptor sums_operation(const Descriptor& of, int64_t channels) {
  const TensorOptions options{.dtype = Dtype::kF32};
  const Shape shape{1, channels, 1, 1};
  Descriptor made(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_GENSTATS_SUM_SQSUM)
      .set(CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_OPERATION_GENSTATS_XDESC, of)
      .set(CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, tensor(kSums, shape, options))
      .set(CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, tensor(kSquareSums, shape, options));
  return made.finalize();
}

std::vector<Descriptor> operations_of(const ConvolutionProblem& problem) {
  const Shape out_shape = problem.out();
  const auto by_channel = [&](TensorId id, int64_t channels) {
    return tensor(id, {1, channels, 1, 1}, {.dtype = problem.dtype});
  };
  const auto between = [](TensorId id, const Shape& shape) {
    return tensor(id, shape, {.dtype = Dtype::kF32, .is_virtual = true});
  };
  std::vector<Descriptor> operations;
  Descriptor in = tensor(kIn, problem.in, {.dtype = problem.dtype});
  if (problem.norms_in) {
    const Descriptor scale = by_channel(kInScale, problem.in[1]);
    const Descriptor shift = by_channel(kInShift, problem.in[1]);
    const Descriptor scaled = between(kScaled, problem.in);
    const Descriptor shifted = between(kShifted, problem.in);
    Descriptor normed = between(kNormed, problem.in);
    operations.push_back(pointwise_operation(CUDNN_POINTWISE_MUL, in, &scale, scaled));
    operations.push_back(pointwise_operation(CUDNN_POINTWISE_ADD, scaled, &shift, shifted));
    operations.push_back(pointwise_operation(CUDNN_POINTWISE_RELU_FWD, shifted, nullptr, normed));
    in = std::move(normed);
  }
  const Descriptor out = tensor(kOut, out_shape, {.dtype = problem.dtype});
  if (problem.has_bias) {
    const Descriptor unbiased = between(kUnbiased, out_shape);
    const Descriptor bias = by_channel(kBias, out_shape[1]);
    operations.push_back(convolution_operation(problem, in, unbiased));
    operations.push_back(pointwise_operation(CUDNN_POINTWISE_ADD, unbiased, &bias, out));
  } else {
    operations.push_back(convolution_operation(problem, in, out));
  }
  if (problem.gives_sums) operations.push_back(sums_operation(out, out_shape[1]));
  return operations;
}

}  // namespace

Descriptor operation_graph(const Target& target, const ConvolutionProblem& problem) {
  const std::vector<Descriptor> operations = operations_of(problem);
  std::vector<cudnnBackendDescriptor_t> raw;
  raw.reserve(operations.size());
  for (const Descriptor& operation : operations) raw.push_back(operation.get());
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (target.handle() != nullptr) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, target.handle());
  graph.set_all<cudnnBackendDescriptor_t>(CUDNN_ATTR_OPERATIONGRAPH_OPS, raw);
  return graph.finalize();
}

}  // namespace lockstep::kernels::cudnn
