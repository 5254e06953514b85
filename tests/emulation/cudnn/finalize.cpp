// The checks of cudnnBackendFinalize for each type of descriptor, and the state that it derives.
#include <algorithm>
#include <string>

#include "tests/emulation/cudnn/graph.h"

namespace lockstep::emulation {
namespace {

constexpr size_t kMaxDimensions = 8;

void is(bool holds, const char* text) {
  require(holds, CUDNN_STATUS_BAD_PARAM, text);
}

void finalize_tensor(const BackendDescriptor& tensor) {
  const auto extents = tensor.values<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
  const auto strides = tensor.values<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  is(extents.size() <= kMaxDimensions, "_nbDims >= int(sizeof(_dimA) / sizeof(_dimA[0]))");
  is(extents.size() == strides.size(), "_nbDims != _nbStrides");
  is(std::ranges::all_of(strides, [](int64_t stride) { return stride >= 0; }), "_strA[d] < 0");
  const auto element = static_cast<int64_t>(std::max<size_t>(
      bytes_of_element(tensor.value<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)), 1));
  const int64_t alignment = tensor.has(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)
                                ? tensor.value<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)
                                : 0;
  is(alignment > 0 && alignment % element == 0,
     "(_ptrAlignment <= 0) || _ptrAlignment % sizeofCudnnType(_dataType) != 0");
  tensor.value<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
}

void finalize_window(const BackendDescriptor& window) {
  const auto dimensions =
      static_cast<size_t>(window.value<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS));
  const auto all_from = [&](cudnnBackendAttributeName_t name, int64_t least) {
    const auto values = window.values<int64_t>(name);
    is(values.size() == dimensions &&
           std::ranges::all_of(values, [&](int64_t value) { return value >= least; }),
       "finalize_internal()");
  };
  all_from(CUDNN_ATTR_CONVOLUTION_DILATIONS, 1);
  all_from(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 1);
  all_from(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 0);
  all_from(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 0);
  window.value<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
  window.value<cudnnConvolutionMode_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE);
}

void finalize_pointwise(const BackendDescriptor& operation) {
  operation.finalized(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                      CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  operation.finalized(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  operation.finalized(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
}

void finalize_sums(const BackendDescriptor& operation) {
  for (const auto name : {CUDNN_ATTR_OPERATION_GENSTATS_XDESC,
                          CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC,
                          CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC}) {
    operation.finalized(name, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  }
}

DescriptorPtr made(cudnnBackendDescriptorType_t type) {
  auto one = std::make_shared<BackendDescriptor>(type);
  one->is_finalized = true;
  return one;
}

DescriptorPtr knob(cudnnBackendKnobType_t type, int64_t value) {
  const DescriptorPtr choice = made(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
  choice->put<cudnnBackendKnobType_t>(
      CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, {type});
  choice->put<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, {value});
  return choice;
}

DescriptorPtr configuration(const CudnnEngine& choice, std::shared_ptr<const Convolution> work) {
  const DescriptorPtr engine = made(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine->put<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, {choice.index});
  engine->put(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, choice.notes);
  const DescriptorPtr config = made(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  config->put(CUDNN_ATTR_ENGINECFG_ENGINE, {engine});
  std::vector<DescriptorPtr> knobs;
  if (choice.has_knobs) knobs = {knob(kPartsKnob, choice.parts), knob(kTileKnob, 5)};
  config->put(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, std::move(knobs));
  config->engine = choice;
  config->work = std::move(work);
  return config;
}

void finalize_heuristics(BackendDescriptor& heuristics) {
  is(heuristics.has(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH), "nullptr == opset_ptr");
  const BackendDescriptor& graph = heuristics.finalized(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                                                        CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  const auto mode = heuristics.value<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE);
  if (heuristics.has(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP)) {
    heuristics.finalized(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  } else {
    is(graph.has(CUDNN_ATTR_OPERATIONGRAPH_HANDLE), "neither a handle nor a device");
  }
  std::vector<DescriptorPtr> results;
  if (graph.work) {
    for (const CudnnEngine& engine : preferred_engines(*graph.work, mode)) {
      results.push_back(configuration(engine, graph.work));
    }
  }
  require(!results.empty(), CUDNN_STATUS_NOT_SUPPORTED, "no engine takes this graph");
  heuristics.put(CUDNN_ATTR_ENGINEHEUR_RESULTS, std::move(results));
}

void finalize_plan(BackendDescriptor& plan) {
  require(plan.has(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG),
          CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
          "assert_finalized == true");
  const BackendDescriptor& config =
      plan.finalized(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  require(!config.engine.is_refused,
          CUDNN_STATUS_NOT_SUPPORTED,
          "the engine does not take this graph after all");
  plan.engine = config.engine;
  plan.work = config.work;
  plan.put<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                    CUDNN_TYPE_INT64,
                    {plan.engine.workspace(*plan.work)});
}

void finalize_pack(const BackendDescriptor& pack) {
  const auto count = [&](cudnnBackendAttributeName_t name) {
    return pack.has(name) ? pack.attributes.at(name).count : 0;
  };
  is(count(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS) == count(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS),
     "ptrs_count != uids_count");
}

void finalize_device(BackendDescriptor& device) {
  if (device.has(CUDNN_ATTR_DEVICEPROP_HANDLE)) {
    const std::string text =
        R"({"deviceName":"emulated device","deviceVer":900,"maxGridSize":[2147483647,1,1]})";
    device.put<char>(
        CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, {text.begin(), text.end()});
    return;
  }
  require(device.has(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION),
          CUDNN_STATUS_NOT_INITIALIZED,
          "neither a handle nor a text");
  const auto text = device.values<char>(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
  const std::string whole(text.begin(), text.end());
  for (const char* const member : {"maxGridSize", "deviceVer"}) {
    is(whole.find(member) != std::string::npos, "!json_object.HasMember(\"maxGridSize\")");
  }
}

}  // namespace

void finalize(BackendDescriptor& descriptor) {
  is(!descriptor.is_finalized, "ptrDesc->finalize()");
  switch (descriptor.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      finalize_tensor(descriptor);
      break;
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      finalize_window(descriptor);
      break;
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
      descriptor.value<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
      descriptor.value<cudnnDataType_t>(CUDNN_ATTR_POINTWISE_MATH_PREC);
      break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      check_convolution(descriptor);
      break;
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      finalize_pointwise(descriptor);
      break;
    case CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR:
      finalize_sums(descriptor);
      break;
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      is(descriptor.has(CUDNN_ATTR_OPERATIONGRAPH_OPS), "outputGraph.buildDAG()");
      descriptor.work = decode(descriptor.descriptors(CUDNN_ATTR_OPERATIONGRAPH_OPS));
      break;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      finalize_heuristics(descriptor);
      break;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      finalize_plan(descriptor);
      break;
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      finalize_pack(descriptor);
      break;
    case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR:
      finalize_device(descriptor);
      break;
    default:
      throw CudnnRefusal{CUDNN_STATUS_NOT_SUPPORTED, "a descriptor that this cuDNN fills itself"};
  }
  descriptor.is_finalized = true;
}

}  // namespace lockstep::emulation
