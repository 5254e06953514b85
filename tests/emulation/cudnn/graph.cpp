#include "tests/emulation/cudnn/graph.h"

#include <algorithm>
#include <set>

namespace lockstep::emulation {
namespace {

constexpr int64_t kFusedChannels = 8;  // in f16, the channels must fill whole 16 bytes

// The attribute names of one of the three convolution operations.
struct Names {
  CudnnPass pass;
  cudnnBackendAttributeName_t convolution, in, weight, out, alpha, beta;
};

const Names* names_of(cudnnBackendDescriptorType_t type) {
  static constexpr Names kForward = {CudnnPass::kForward,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  static constexpr Names kBackwardData = {CudnnPass::kBackwardData,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
  static constexpr Names kBackwardWeight = {CudnnPass::kBackwardWeight,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  switch (type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return &kForward;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return &kBackwardData;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return &kBackwardWeight;
    default:
      return nullptr;
  }
}

CudnnTensor operand(const BackendDescriptor& operation, cudnnBackendAttributeName_t name) {
  return tensor_of(operation.finalized(name, CUDNN_BACKEND_TENSOR_DESCRIPTOR));
}

struct Pointwise {
  CudnnTensor from, to;
  std::optional<CudnnTensor> with = {};
};

// A graph's operations. Each is removed once it has been matched.
class Pattern {
 public:
  explicit Pattern(const std::vector<DescriptorPtr>& operations) {
    for (const DescriptorPtr& operation : operations) left_.push_back(operation.get());
  }

  bool is_empty() const { return left_.empty(); }
  // The graph's convolution; null if there is none.
  const BackendDescriptor* take_convolution() {
    return take([](const BackendDescriptor& one) { return names_of(one.type) != nullptr; });
  }
  const BackendDescriptor* take_sums() {
    return take([](const BackendDescriptor& one) {
      return one.type == CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR;
    });
  }
  // The pointwise operation with this mode that reads, or produces, the tensor.
  std::optional<Pointwise> take_reader(cudnnPointwiseMode_t mode, int64_t uid) {
    return take_pointwise(mode, uid, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
  }
  std::optional<Pointwise> take_maker(cudnnPointwiseMode_t mode, int64_t uid) {
    return take_pointwise(mode, uid, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  }

 private:
  template <class Is>
  const BackendDescriptor* take(Is&& is) {
    const auto found = std::ranges::find_if(left_, [&](const auto* one) { return is(*one); });
    if (found == left_.end()) return nullptr;
    const BackendDescriptor* const taken = *found;
    left_.erase(found);
    return taken;
  }
  std::optional<Pointwise> take_pointwise(cudnnPointwiseMode_t mode,
                                          int64_t uid,
                                          cudnnBackendAttributeName_t side) {
    const BackendDescriptor* const found = take([&](const BackendDescriptor& one) {
      return one.type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR &&
             operand(one, side).uid == uid &&
             one.finalized(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                           CUDNN_BACKEND_POINTWISE_DESCRIPTOR)
                     .value<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE) == mode;
    });
    if (found == nullptr) return {};
    Pointwise pointwise{operand(*found, CUDNN_ATTR_OPERATION_POINTWISE_XDESC),
                        operand(*found, CUDNN_ATTR_OPERATION_POINTWISE_YDESC)};
    if (found->has(CUDNN_ATTR_OPERATION_POINTWISE_BDESC))
      pointwise.with = operand(*found, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    return pointwise;
  }

  std::vector<const BackendDescriptor*> left_;
};

// Whether the tensor holds one value per channel.
bool is_row(const CudnnTensor& row, int64_t channels, cudnnDataType_t type) {
  return row.extents == std::array<int64_t, 4>{1, channels, 1, 1} && row.strides[1] == 1 &&
         row.type == type && !row.is_virtual;
}

bool is_between(const CudnnTensor& tensor, const CudnnTensor& like) {
  return tensor.is_virtual && tensor.extents == like.extents;
}

// Takes the scale, shift and ReLU operations before the convolution.
bool take_norm(Pattern& pattern, Convolution& work) {
  const auto relu = pattern.take_maker(CUDNN_POINTWISE_RELU_FWD, work.in.uid);
  if (!relu) return false;
  const auto shift = pattern.take_maker(CUDNN_POINTWISE_ADD, relu->from.uid);
  if (!shift || !shift->with) return false;
  const auto scale = pattern.take_maker(CUDNN_POINTWISE_MUL, shift->from.uid);
  if (!scale || !scale->with) return false;
  const bool is_chain = is_between(work.in, scale->from) && is_between(relu->from, scale->from) &&
                        is_between(shift->from, scale->from) && !scale->from.is_virtual;
  work.in = scale->from;
  work.scale = scale->with;
  work.shift = shift->with;
  return is_chain && is_row(*work.scale, work.in.extents[1], work.in.type) &&
         is_row(*work.shift, work.in.extents[1], work.in.type);
}

bool take_bias(Pattern& pattern, Convolution& work) {
  const auto bias = pattern.take_reader(CUDNN_POINTWISE_ADD, work.out.uid);
  if (!bias || !bias->with || work.out.type != CUDNN_DATA_FLOAT ||
      !is_between(work.out, bias->to)) {
    return false;
  }
  work.out = bias->to;
  work.bias = bias->with;
  return is_row(*work.bias, work.out.extents[1], work.out.type);
}

bool take_genstats(const BackendDescriptor& operation, Convolution& work) {
  const auto is_of_floats =
      operation.value<cudnnDataType_t>(CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC) == CUDNN_DATA_FLOAT;
  work.sums = operand(operation, CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC);
  work.square_sums = operand(operation, CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC);
  return is_of_floats &&
         operation.value<cudnnGenStatsMode_t>(CUDNN_ATTR_OPERATION_GENSTATS_MODE) ==
             CUDNN_GENSTATS_SUM_SQSUM &&
         operand(operation, CUDNN_ATTR_OPERATION_GENSTATS_XDESC).uid == work.out.uid &&
         is_row(*work.sums, work.out.extents[1], CUDNN_DATA_FLOAT) &&
         is_row(*work.square_sums, work.out.extents[1], CUDNN_DATA_FLOAT);
}

bool is_plain(const BackendDescriptor& operation, const BackendDescriptor& window) {
  const Names& names = *names_of(operation.type);
  return operation.value<float>(names.alpha) == 1 && operation.value<float>(names.beta) == 0 &&
         window.value<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE) == CUDNN_DATA_FLOAT &&
         window.value<cudnnConvolutionMode_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) ==
             CUDNN_CROSS_CORRELATION;
}

std::array<int64_t, 2> pair(const BackendDescriptor& window, cudnnBackendAttributeName_t name) {
  const auto values = window.values<int64_t>(name);
  return {values[0], values[1]};
}

// Whether all tensors have the same float type, lie in memory without overlapping elements, and
// occur once in the variant pack.
bool is_sound(const Convolution& work) {
  std::set<int64_t> uids;
  for (const CudnnTensor& tensor : work.tensors()) {
    const bool is_distinct =
        std::ranges::all_of(tensor.strides, [](int64_t stride) { return stride > 0; });
    if (!is_distinct || tensor.is_virtual || !uids.insert(tensor.uid).second) return false;
  }
  return bytes_of_element(work.in.type) != 0 && work.weight.type == work.in.type &&
         work.out.type == work.in.type;
}

// The set of graphs with an engine was determined with cuDNN 9.19 for an H200
// (tests/cudnn/verdicts_test.cpp).
bool has_engine(const Convolution& work) {
  const bool is_fused = work.sums || work.scale;
  if (!is_fused) return true;
  const bool is_half = work.in.type == CUDNN_DATA_HALF && work.groups() == 1 &&
                       work.in.extents[1] % kFusedChannels == 0 &&
                       work.out.extents[1] % kFusedChannels == 0;
  const bool is_known = work.pass == CudnnPass::kForward
                            ? work.sums && !work.bias
                            : work.pass == CudnnPass::kBackwardWeight && !work.sums;
  return is_half && is_known;
}

// Refuses graphs in which two operations produce the same tensor, since they have no order.
void check_edges(const std::vector<DescriptorPtr>& operations) {
  std::set<int64_t> made;
  for (const DescriptorPtr& operation : operations) {
    const Names* const names = names_of(operation->type);
    const auto name = names == nullptr                     ? CUDNN_ATTR_OPERATION_POINTWISE_YDESC
                      : names->pass == CudnnPass::kForward ? names->out
                      : names->pass == CudnnPass::kBackwardWeight ? names->weight
                                                                  : names->in;
    if (!operation->has(name)) continue;
    require(made.insert(operand(*operation, name).uid).second,
            CUDNN_STATUS_BAD_PARAM,
            "node->linkEdges(peerNode.get())");
  }
}

}  // namespace

CudnnTensor tensor_of(const BackendDescriptor& descriptor) {
  CudnnTensor tensor{.uid = descriptor.value<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID),
                     .type = descriptor.value<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE),
                     .alignment = descriptor.value<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT),
                     .is_virtual = descriptor.has(CUDNN_ATTR_TENSOR_IS_VIRTUAL) &&
                                   descriptor.value<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL)};
  const auto extents = descriptor.values<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
  const auto strides = descriptor.values<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  require(extents.size() == tensor.extents.size(),
          CUDNN_STATUS_NOT_SUPPORTED,
          "tensors of other than 4 dimensions");
  std::ranges::copy(extents, tensor.extents.begin());
  std::ranges::copy(strides, tensor.strides.begin());
  return tensor;
}

void check_convolution(const BackendDescriptor& operation) {
  const Names& names = *names_of(operation.type);
  const BackendDescriptor& window =
      operation.finalized(names.convolution, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const CudnnTensor in = operand(operation, names.in), weight = operand(operation, names.weight),
                    out = operand(operation, names.out);
  const auto is = [](bool holds, const char* text) {
    require(holds, CUDNN_STATUS_BAD_PARAM, text);
  };
  is(out.extents[0] == in.extents[0], "yDimA[N_DIM] != xDimA[N_DIM]");
  is(out.extents[1] == weight.extents[0], "yDimA[CK_DIM] != wDimA[WK_DIM]");
  is(weight.extents[1] > 0 && in.extents[1] % weight.extents[1] == 0,
     "(0 == wDimA[1]) || (0 == xDimA[1]) || (0 != xDimA[1] % wDimA[1])");
  is(out.extents[1] % (in.extents[1] / weight.extents[1]) == 0,
     "groups that do not divide outputs");
  const auto strides = pair(window, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  const auto dilations = pair(window, CUDNN_ATTR_CONVOLUTION_DILATIONS);
  const auto before = pair(window, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  const auto behind = pair(window, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
  for (size_t i = 0; i < 2; ++i) {
    const int64_t taps = (weight.extents[i + 2] - 1) * dilations[i] + 1;
    const int64_t room = in.extents[i + 2] + before[i] + behind[i] - taps;
    is(room >= 0 && out.extents[i + 2] == room / strides[i] + 1, "is_valid_spatial_dim");
  }
}

std::shared_ptr<const Convolution> decode(const std::vector<DescriptorPtr>& operations) {
  require(!operations.empty(), CUDNN_STATUS_BAD_PARAM, "outputGraph.buildDAG()");
  check_edges(operations);
  Pattern pattern(operations);
  const BackendDescriptor* const operation = pattern.take_convolution();
  if (operation == nullptr) return nullptr;
  const Names& names = *names_of(operation->type);
  const BackendDescriptor& window =
      operation->finalized(names.convolution, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  Convolution work{.pass = names.pass,
                   .in = operand(*operation, names.in),
                   .weight = operand(*operation, names.weight),
                   .out = operand(*operation, names.out),
                   .strides = pair(window, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
                   .pads = pair(window, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
                   .dilations = pair(window, CUDNN_ATTR_CONVOLUTION_DILATIONS),
                   .bias = {},
                   .sums = {},
                   .square_sums = {},
                   .scale = {},
                   .shift = {}};
  if (!is_plain(*operation, window)) return nullptr;
  if (work.in.is_virtual && !take_norm(pattern, work)) return nullptr;
  if (work.out.is_virtual && !take_bias(pattern, work)) return nullptr;
  const BackendDescriptor* const sums = pattern.take_sums();
  if (sums != nullptr && !take_genstats(*sums, work)) return nullptr;
  if (!pattern.is_empty() || !is_sound(work) || !has_engine(work)) return nullptr;
  return std::make_shared<const Convolution>(work);
}

}  // namespace lockstep::emulation
