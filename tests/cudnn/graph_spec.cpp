#include "tests/cudnn/graph_spec.h"

#include <algorithm>
#include <array>

namespace lockstep::testing {
namespace {

// Ends a trial at the first call that is refused.
struct Refused {
  Verdict verdict;
};

std::vector<int64_t> channels_last(const std::vector<int64_t>& extents) {
  return {extents[1] * extents[2] * extents[3], 1, extents[1] * extents[3], extents[1]};
}

class Trial {
 public:
  explicit Trial(const CudnnFunctions& cudnn) : cudnn_(cudnn) {}
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  ~Trial() {
    for (auto made = made_.rbegin(); made != made_.rend(); ++made) cudnn_.destroy(*made);
  }

  cudnnBackendDescriptor_t make(cudnnBackendDescriptorType_t type) {
    cudnnBackendDescriptor_t made = nullptr;
    expect(cudnn_.create(type, &made), "create " + std::to_string(type));
    made_.push_back(made);
    return made;
  }
  void set(cudnnBackendDescriptor_t to,
           cudnnBackendAttributeName_t name,
           cudnnBackendAttributeType_t type,
           int64_t count,
           const void* values) {
    expect(cudnn_.set(to, name, type, count, values), "set " + std::to_string(name));
  }
  template <class T>
  void set(cudnnBackendDescriptor_t to,
           cudnnBackendAttributeName_t name,
           cudnnBackendAttributeType_t type,
           const T& value) {
    set(to, name, type, 1, &value);
  }
  void set(cudnnBackendDescriptor_t to,
           cudnnBackendAttributeName_t name,
           const std::vector<int64_t>& values) {
    set(to, name, CUDNN_TYPE_INT64, std::ssize(values), values.data());
  }
  void set(cudnnBackendDescriptor_t to,
           cudnnBackendAttributeName_t name,
           cudnnBackendDescriptor_t value) {
    set(to, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
  }
  void finalize(cudnnBackendDescriptor_t made, const std::string& what) {
    expect(cudnn_.finalize(made), "finalize " + what);
  }
  bool try_finalize(cudnnBackendDescriptor_t made) {
    return cudnn_.finalize(made) == CUDNN_STATUS_SUCCESS;
  }
  int64_t get(cudnnBackendDescriptor_t from,
              cudnnBackendAttributeName_t name,
              cudnnBackendAttributeType_t type,
              int64_t capacity,
              void* values) {
    int64_t got = 0;
    expect(cudnn_.get(from, name, type, capacity, &got, values), "get " + std::to_string(name));
    return got;
  }
  cudnnBackendDescriptor_t tensor(const TensorSpec& spec);
  cudnnBackendDescriptor_t convolution(const GraphSpec& spec);
  std::vector<cudnnBackendDescriptor_t> operations(const GraphSpec& spec);
  // Whether an exact engine of these preferences makes a plan.
  bool has_plan(cudnnBackendDescriptor_t graph,
                cudnnBackendDescriptor_t device,
                cudnnBackendHeurMode_t mode,
                cudnnDataType_t type);

 private:
  void expect(cudnnStatus_t status, const std::string& step) {
    if (status != CUDNN_STATUS_SUCCESS) throw Refused{{step, status}};
  }
  bool is_exact(cudnnBackendDescriptor_t config, cudnnDataType_t type);

  const CudnnFunctions& cudnn_;
  std::vector<cudnnBackendDescriptor_t> made_;
};

cudnnBackendDescriptor_t Trial::tensor(const TensorSpec& spec) {
  const cudnnBackendDescriptor_t made = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  set(made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, spec.uid);
  set(made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, spec.type);
  set(made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, spec.alignment);
  set(made, CUDNN_ATTR_TENSOR_DIMENSIONS, spec.extents);
  set(made,
      CUDNN_ATTR_TENSOR_STRIDES,
      spec.strides.empty() ? channels_last(spec.extents) : spec.strides);
  set(made, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, spec.is_virtual);
  finalize(made, "tensor " + std::to_string(spec.uid));
  return made;
}

cudnnBackendDescriptor_t Trial::convolution(const GraphSpec& spec) {
  const cudnnBackendDescriptor_t made = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  set(made, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, spec.compute);
  set(made, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, spec.mode);
  set(made, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, spec.spatial_dimensions);
  set(made, CUDNN_ATTR_CONVOLUTION_DILATIONS, spec.dilations);
  set(made, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, spec.strides);
  set(made, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, spec.pads);
  set(made, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, spec.post_pads);
  finalize(made, "convolution");
  return made;
}

// Types and attributes of the operation: itself, its convolution, in, weight, out, alpha, beta.
struct ConvolutionNames {
  cudnnBackendDescriptorType_t type;
  std::array<cudnnBackendAttributeName_t, 6> attributes;
};
ConvolutionNames names_of(SpecPass pass) {
  switch (pass) {
    case SpecPass::kForward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
               CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
               CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
               CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
               CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
               CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA}};
    case SpecPass::kBackwardData:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA}};
    case SpecPass::kBackwardWeight:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};
}

std::vector<cudnnBackendDescriptor_t> Trial::operations(const GraphSpec& spec) {
  std::vector<cudnnBackendDescriptor_t> made;
  const auto pointwise = [&](cudnnPointwiseMode_t mode,
                             cudnnBackendDescriptor_t from,
                             cudnnBackendDescriptor_t with,
                             cudnnBackendDescriptor_t to) {
    const cudnnBackendDescriptor_t function = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(function, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
    set(function, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, spec.compute);
    finalize(function, "pointwise");
    const cudnnBackendDescriptor_t operation = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function);
    set(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, from);
    set(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to);
    if (with != nullptr) set(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, with);
    finalize(operation, "pointwise operation");
    made.push_back(operation);
  };
  cudnnBackendDescriptor_t in = tensor(spec.in);
  const cudnnBackendDescriptor_t weight = tensor(spec.weight), out = tensor(spec.out);
  if (!spec.norm.empty()) {  // scale, shift, and the three between
    std::vector<cudnnBackendDescriptor_t> tensors;
    for (const TensorSpec& one : spec.norm) tensors.push_back(tensor(one));
    pointwise(CUDNN_POINTWISE_MUL, in, tensors[0], tensors[2]);
    pointwise(CUDNN_POINTWISE_ADD, tensors[2], tensors[1], tensors[3]);
    pointwise(CUDNN_POINTWISE_RELU_FWD, tensors[3], nullptr, tensors[4]);
    in = tensors[4];
  }
  const cudnnBackendDescriptor_t to = spec.bias.empty() ? out : tensor(spec.bias[1]);
  const ConvolutionNames names = names_of(spec.pass);
  const cudnnBackendDescriptor_t operation = make(names.type);
  set(operation, names.attributes[0], convolution(spec));
  set(operation, names.attributes[1], in);
  set(operation, names.attributes[2], weight);
  set(operation, names.attributes[3], to);
  set(operation, names.attributes[4], CUDNN_TYPE_FLOAT, spec.alpha);
  set(operation, names.attributes[5], CUDNN_TYPE_FLOAT, spec.beta);
  finalize(operation, "convolution operation");
  made.push_back(operation);
  if (!spec.bias.empty()) pointwise(CUDNN_POINTWISE_ADD, to, tensor(spec.bias[0]), out);
  if (spec.sums.empty()) return made;
  const cudnnBackendDescriptor_t sums = make(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
  set(sums, CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, CUDNN_GENSTATS_SUM_SQSUM);
  set(sums, CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, spec.compute);
  set(sums, CUDNN_ATTR_OPERATION_GENSTATS_XDESC, out);
  set(sums, CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, tensor(spec.sums[0]));
  set(sums, CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, tensor(spec.sums[1]));
  finalize(sums, "sums");
  made.push_back(sums);
  return made;
}

bool Trial::is_exact(cudnnBackendDescriptor_t config, cudnnDataType_t type) {
  cudnnBackendDescriptor_t engine = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  get(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine);
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  const int64_t count = get(engine,
                            CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                            CUDNN_TYPE_NUMERICAL_NOTE,
                            std::ssize(notes),
                            notes.data());
  return std::none_of(notes.begin(), notes.begin() + count, [&](cudnnBackendNumericalNote_t note) {
    return note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC ||
           note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
           note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
           (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && type == CUDNN_DATA_FLOAT);
  });
}

bool Trial::has_plan(cudnnBackendDescriptor_t graph,
                     cudnnBackendDescriptor_t device,
                     cudnnBackendHeurMode_t mode,
                     cudnnDataType_t type) {
  const cudnnBackendDescriptor_t heuristics = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  set(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  set(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  set(heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
  if (!try_finalize(heuristics)) return false;
  std::vector<cudnnBackendDescriptor_t> configs(static_cast<size_t>(
      get(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr)));
  for (auto& config : configs) config = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  configs.resize(static_cast<size_t>(get(heuristics,
                                         CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                         CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                         std::ssize(configs),
                                         configs.data())));
  return std::ranges::any_of(configs, [&](cudnnBackendDescriptor_t config) {
    if (!is_exact(config, type)) return false;
    const cudnnBackendDescriptor_t plan = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    return try_finalize(plan);
  });
}

}  // namespace

GraphSpec::GraphSpec(SpecPass its_pass, cudnnDataType_t type, int64_t images) : pass(its_pass) {
  in = {.uid = 1, .type = type, .extents = {images, 16, 8, 8}};
  weight = {.uid = 2, .type = type, .extents = {32, 16, 3, 3}};
  out = {.uid = 3, .type = type, .extents = {images, 32, 8, 8}};
}

void GraphSpec::add_bias() {
  bias = {{.uid = 4, .type = out.type, .extents = {1, out.extents[1], 1, 1}}, out};
  bias[1].uid = 12;
  bias[1].type = CUDNN_DATA_FLOAT;
  bias[1].is_virtual = true;
}

void GraphSpec::add_sums() {
  const std::vector<int64_t> row = {1, out.extents[1], 1, 1};
  sums = {{.uid = 5, .extents = row}, {.uid = 6, .extents = row}};
}

void GraphSpec::add_norm() {
  const std::vector<int64_t> row = {1, in.extents[1], 1, 1};
  norm = {{.uid = 7, .type = in.type, .extents = row}, {.uid = 8, .type = in.type, .extents = row}};
  for (const int64_t uid : {9, 10, 11}) {
    norm.push_back({.uid = uid, .extents = in.extents, .is_virtual = true});
  }
}

Verdict verdict_of(const CudnnFunctions& cudnn,
                   const GraphSpec& spec,
                   const std::string& properties) {
  Trial trial(cudnn);
  try {
    const cudnnBackendDescriptor_t device = trial.make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    trial.set(device,
              CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
              CUDNN_TYPE_CHAR,
              std::ssize(properties),
              properties.data());
    trial.finalize(device, "device");
    const std::vector<cudnnBackendDescriptor_t> operations = trial.operations(spec);
    const cudnnBackendDescriptor_t graph = trial.make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    trial.set(graph,
              CUDNN_ATTR_OPERATIONGRAPH_OPS,
              CUDNN_TYPE_BACKEND_DESCRIPTOR,
              std::ssize(operations),
              operations.data());
    trial.finalize(graph, "graph");
    const bool made = trial.has_plan(graph, device, CUDNN_HEUR_MODE_A, spec.in.type) ||
                      trial.has_plan(graph, device, CUDNN_HEUR_MODE_FALLBACK, spec.in.type);
    return {made ? "plan" : "no engine", 0};
  } catch (const Refused& refused) {
    return refused.verdict;
  }
}

}  // namespace lockstep::testing
