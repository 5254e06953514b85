// Descriptors of cuDNN's graph API: objects of named attributes, finalized before use.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "kernels/support/cudnn/api.h"

namespace lockstep::kernels::cudnn {

// A failed cuDNN call, with cuDNN's message.
class CudnnError : public EnvironmentError {
 public:
  CudnnError(std::string_view call, cudnnStatus_t status);
};
// Errors: CudnnError unless status is CUDNN_STATUS_SUCCESS.
void check(cudnnStatus_t status, std::string_view call);

// The attribute type of T.
template <class T>
struct AttributeTypeOf;
template <cudnnBackendAttributeType_t kType>
struct AttributeTypeIs {
  static constexpr cudnnBackendAttributeType_t kValue = kType;
};
template <>
struct AttributeTypeOf<int64_t> : AttributeTypeIs<CUDNN_TYPE_INT64> {};
template <>
struct AttributeTypeOf<float> : AttributeTypeIs<CUDNN_TYPE_FLOAT> {};
template <>
struct AttributeTypeOf<bool> : AttributeTypeIs<CUDNN_TYPE_BOOLEAN> {};
template <>
struct AttributeTypeOf<char> : AttributeTypeIs<CUDNN_TYPE_CHAR> {};
template <>
struct AttributeTypeOf<cudnnHandle_t> : AttributeTypeIs<CUDNN_TYPE_HANDLE> {};
template <>
struct AttributeTypeOf<cudnnDataType_t> : AttributeTypeIs<CUDNN_TYPE_DATA_TYPE> {};
template <>
struct AttributeTypeOf<cudnnConvolutionMode_t> : AttributeTypeIs<CUDNN_TYPE_CONVOLUTION_MODE> {};
template <>
struct AttributeTypeOf<cudnnPointwiseMode_t> : AttributeTypeIs<CUDNN_TYPE_POINTWISE_MODE> {};
template <>
struct AttributeTypeOf<cudnnGenStatsMode_t> : AttributeTypeIs<CUDNN_TYPE_GENSTATS_MODE> {};
template <>
struct AttributeTypeOf<cudnnBackendHeurMode_t> : AttributeTypeIs<CUDNN_TYPE_HEUR_MODE> {};
template <>
struct AttributeTypeOf<cudnnBackendKnobType_t> : AttributeTypeIs<CUDNN_TYPE_KNOB_TYPE> {};
template <>
struct AttributeTypeOf<cudnnBackendNumericalNote_t> : AttributeTypeIs<CUDNN_TYPE_NUMERICAL_NOTE> {};
template <>
struct AttributeTypeOf<cudnnBackendDescriptor_t> : AttributeTypeIs<CUDNN_TYPE_BACKEND_DESCRIPTOR> {
};

// Errors of all functions: CudnnError.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type);

  cudnnBackendDescriptor_t get() const { return owned_.get(); }

  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, const T& value) {
    return set_all(name, std::span<const T>(&value, 1));
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    return set(name, value.get());
  }
  template <class T>
  Descriptor& set_all(cudnnBackendAttributeName_t name, std::span<const T> values) {
    return set_raw(name,
                   AttributeTypeOf<T>::kValue,
                   std::ssize(values),
                   static_cast<const void*>(values.data()));
  }
  // Sets device addresses. It has its own name because a descriptor's handle is a void*, too.
  Descriptor& set_addresses(cudnnBackendAttributeName_t name, std::span<void* const> values) {
    return set_raw(
        name, CUDNN_TYPE_VOID_PTR, std::ssize(values), static_cast<const void*>(values.data()));
  }
  Descriptor& finalize();
  // Returns false when cuDNN does not support this combination of attributes.
  bool try_finalize();

  template <class T>
  T value(cudnnBackendAttributeName_t name) const {
    T found{};
    get_raw(name, AttributeTypeOf<T>::kValue, 1, &found);
    return found;
  }
  // All values of an attribute that is a list.
  template <class T>
  std::vector<T> values(cudnnBackendAttributeName_t name) const {
    std::vector<T> found(static_cast<size_t>(count(name, AttributeTypeOf<T>::kValue)));
    const int64_t got = get_raw(name, AttributeTypeOf<T>::kValue, std::ssize(found), found.data());
    found.resize(static_cast<size_t>(got));
    return found;
  }
  // Reads an attribute that is a list of at most `most` descriptors of `type`.
  std::vector<Descriptor> descriptors(cudnnBackendAttributeName_t name,
                                      cudnnBackendDescriptorType_t type,
                                      int64_t most) const;
  int64_t count(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const;
  std::string text(cudnnBackendAttributeName_t name) const;

 private:
  Descriptor& set_raw(cudnnBackendAttributeName_t name,
                      cudnnBackendAttributeType_t type,
                      int64_t count,
                      const void* values);
  int64_t get_raw(cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type,
                  int64_t capacity,
                  void* values) const;

  std::shared_ptr<void> owned_;
};

}  // namespace lockstep::kernels::cudnn
