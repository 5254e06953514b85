#include "tests/emulation/cudnn/descriptor.h"

#include <algorithm>
#include <span>
#include <unordered_map>

namespace lockstep::emulation {
namespace {

constexpr int64_t kAny = INT64_MAX;

// An attribute that a program may set or read.
struct Known {
  cudnnBackendDescriptorType_t descriptor;
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  int64_t max_count = 1;  // number of values; 1: exactly one
};

constexpr auto kDescriptor = CUDNN_TYPE_BACKEND_DESCRIPTOR;
constexpr Known kKnown[] = {
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, kAny},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, kAny},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
     CUDNN_ATTR_CONVOLUTION_CONV_MODE,
     CUDNN_TYPE_CONVOLUTION_MODE},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
     CUDNN_ATTR_CONVOLUTION_DILATIONS,
     CUDNN_TYPE_INT64,
     kAny},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
     CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES,
     CUDNN_TYPE_INT64,
     kAny},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
     CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS,
     CUDNN_TYPE_INT64,
     kAny},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
     CUDNN_ATTR_CONVOLUTION_POST_PADDINGS,
     CUDNN_TYPE_INT64,
     kAny},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     kDescriptor},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     kDescriptor},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
     kDescriptor},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     kDescriptor},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
     CUDNN_TYPE_FLOAT},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
     CUDNN_TYPE_FLOAT},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     kDescriptor},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
     kDescriptor},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     kDescriptor},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
     kDescriptor},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_TYPE_FLOAT},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
     CUDNN_TYPE_FLOAT},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     kDescriptor},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     kDescriptor},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     kDescriptor},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     kDescriptor},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_TYPE_FLOAT},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
     CUDNN_TYPE_FLOAT},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
     kDescriptor},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
     kDescriptor},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
     kDescriptor},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
     kDescriptor},
    {CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_GENSTATS_MODE,
     CUDNN_TYPE_GENSTATS_MODE},
    {CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC,
     CUDNN_TYPE_DATA_TYPE},
    {CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_GENSTATS_XDESC,
     kDescriptor},
    {CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC,
     kDescriptor},
    {CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC,
     kDescriptor},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS, kDescriptor, kAny},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, kDescriptor},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, kDescriptor},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_RESULTS, kDescriptor, kAny},
    {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_ENGINE, kDescriptor},
    {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, kDescriptor, kAny},
    {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64},
    {CUDNN_BACKEND_ENGINE_DESCRIPTOR,
     CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
     CUDNN_TYPE_NUMERICAL_NOTE,
     kAny},
    {CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE},
    {CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, kDescriptor},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
     CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
     CUDNN_TYPE_INT64},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
     CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
     CUDNN_TYPE_INT64,
     kAny},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
     CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
     CUDNN_TYPE_VOID_PTR,
     kAny},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR},
    {CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE},
    {CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR,
     CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
     CUDNN_TYPE_CHAR,
     kAny},
};

// Errors: CudnnRefusal if this type of descriptor lacks the attribute, or the attribute has another
// type.
const Known& known(cudnnBackendDescriptorType_t descriptor,
                   cudnnBackendAttributeName_t name,
                   cudnnBackendAttributeType_t type) {
  const auto* const found = std::ranges::find_if(
      kKnown, [&](const Known& one) { return one.descriptor == descriptor && one.name == name; });
  require(found != std::end(kKnown),
          CUDNN_STATUS_BAD_PARAM,
          "ptrDesc->set(attributeName, attributeType, elementCount, arrayOfElements)");
  require(found->type == type, CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "type != attrType");
  return *found;
}

size_t bytes_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_CHAR:
    case CUDNN_TYPE_BOOLEAN:
      return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;  // float and the enumerations
  }
}

std::unordered_map<const void*, DescriptorPtr>& held() {
  static auto& descriptors = *new std::unordered_map<const void*, DescriptorPtr>;
  return descriptors;
}

}  // namespace

void BackendDescriptor::set(cudnnBackendAttributeName_t name,
                            cudnnBackendAttributeType_t attribute_type,
                            int64_t count,
                            const void* values) {
  require(!is_finalized, CUDNN_STATUS_BAD_PARAM, "set: the descriptor is finalized");
  const Known& attribute = known(type, name, attribute_type);
  require(attribute.max_count > 1 || count == 1, CUDNN_STATUS_BAD_PARAM, "1 != elemCount");
  require(count >= 0 && values != nullptr, CUDNN_STATUS_BAD_PARAM, "arrayOfElements");
  BackendAttribute to{.type = attribute_type, .count = count};
  if (attribute_type == kDescriptor) {
    const auto* const handles = static_cast<const cudnnBackendDescriptor_t*>(values);
    for (const cudnnBackendDescriptor_t handle : std::span(handles, static_cast<size_t>(count))) {
      to.descriptors.push_back(descriptor_of(handle));
      require(name != CUDNN_ATTR_OPERATIONGRAPH_OPS || to.descriptors.back()->is_finalized,
              CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
              "desc->isFinalized() == false");
    }
  } else {
    const auto* const begin = static_cast<const std::byte*>(values);
    to.bytes.assign(begin, begin + static_cast<size_t>(count) * bytes_of(attribute_type));
  }
  attributes[name] = std::move(to);
}

int64_t BackendDescriptor::get(cudnnBackendAttributeName_t name,
                               cudnnBackendAttributeType_t attribute_type,
                               int64_t capacity,
                               void* values) const {
  known(type, name, attribute_type);
  require(is_finalized, CUDNN_STATUS_NOT_INITIALIZED, "get: the descriptor is not finalized");
  const BackendAttribute& from = attribute(name);
  const auto copied = static_cast<size_t>(std::min(capacity, from.count));
  if (attribute_type == kDescriptor) {
    auto* const handles = static_cast<cudnnBackendDescriptor_t*>(values);
    for (size_t i = 0; i < copied; ++i) {
      BackendDescriptor& to = *descriptor_of(handles[i]);
      require(to.type == from.descriptors[i]->type,
              CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
              "a descriptor of another type");
      to = *from.descriptors[i];
    }
  } else if (copied > 0) {
    std::memcpy(values, from.bytes.data(), copied * bytes_of(attribute_type));
  }
  return capacity == 0 ? from.count : static_cast<int64_t>(copied);
}

void BackendDescriptor::put(cudnnBackendAttributeName_t name, std::vector<DescriptorPtr> values) {
  BackendAttribute& to = attributes[name];
  to = {.type = kDescriptor, .count = std::ssize(values)};
  to.descriptors = std::move(values);
}

const BackendAttribute& BackendDescriptor::attribute(cudnnBackendAttributeName_t name) const {
  const auto found = attributes.find(name);
  require(found != attributes.end(), CUDNN_STATUS_BAD_PARAM, "an attribute is not set");
  return found->second;
}

const BackendDescriptor& BackendDescriptor::finalized(cudnnBackendAttributeName_t name,
                                                      cudnnBackendDescriptorType_t wanted) const {
  const BackendDescriptor& found = *descriptors(name).at(0);
  require(found.is_finalized, CUDNN_STATUS_BAD_PARAM, "!desc.isFinalized()");
  require(found.type == wanted, CUDNN_STATUS_BAD_PARAM, "a descriptor of another type");
  return found;
}

cudnnBackendDescriptor_t add_descriptor(cudnnBackendDescriptorType_t type) {
  const bool is_known = std::ranges::any_of(
      kKnown, [&](const Known& attribute) { return attribute.descriptor == type; });
  require(is_known,
          CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
          "CUDNN_STATUS_SUCCESS != getSizeOfDescriptor(descriptorType, size)");
  auto made = std::make_shared<BackendDescriptor>(type);
  BackendDescriptor* const handle = made.get();
  held()[handle] = std::move(made);
  return handle;
}

const DescriptorPtr& descriptor_of(cudnnBackendDescriptor_t handle) {
  const auto found = held().find(handle);
  require(found != held().end(), CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "nullptr == descriptor");
  return found->second;
}

void remove_descriptor(cudnnBackendDescriptor_t handle) {
  descriptor_of(handle);
  held().erase(handle);
}

}  // namespace lockstep::emulation
