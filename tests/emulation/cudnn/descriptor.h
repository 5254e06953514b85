// Descriptors of the emulated cuDNN: attributes that are set before a descriptor is finalized and
// read afterward.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <cudnn_graph.h>

#include "tests/emulation/cudnn/engine.h"

namespace lockstep::emulation {

// Why a call is refused: the status that it returns and the text that cudnnGetLastErrorString()
// then gives.
struct CudnnRefusal {
  cudnnStatus_t status;
  std::string text;
};
inline void require(bool holds, cudnnStatus_t status, const char* text) {
  if (!holds) throw CudnnRefusal{status, text};
}

struct BackendDescriptor;
using DescriptorPtr = std::shared_ptr<BackendDescriptor>;

struct BackendAttribute {
  cudnnBackendAttributeType_t type = CUDNN_TYPE_INT64;
  int64_t count = 0;
  std::vector<std::byte> bytes = {};
  std::vector<DescriptorPtr> descriptors = {};  // for CUDNN_TYPE_BACKEND_DESCRIPTOR
};

struct BackendDescriptor {
  explicit BackendDescriptor(cudnnBackendDescriptorType_t its_type) : type(its_type) {}

  // cudnnBackendSetAttribute and cudnnBackendGetAttribute. Errors: CudnnRefusal.
  void set(cudnnBackendAttributeName_t name,
           cudnnBackendAttributeType_t attribute_type,
           int64_t count,
           const void* values);
  int64_t get(cudnnBackendAttributeName_t name,
              cudnnBackendAttributeType_t attribute_type,
              int64_t capacity,
              void* values) const;

  // The emulation's own access to the attributes, without the checks.
  bool has(cudnnBackendAttributeName_t name) const { return attributes.contains(name); }
  template <class T>
  void put(cudnnBackendAttributeName_t name,
           cudnnBackendAttributeType_t attribute_type,
           const std::vector<T>& values) {
    BackendAttribute& to = attributes[name];
    to = {.type = attribute_type, .count = std::ssize(values)};
    to.bytes.resize(values.size() * sizeof(T));
    std::memcpy(to.bytes.data(), values.data(), to.bytes.size());
  }
  void put(cudnnBackendAttributeName_t name, std::vector<DescriptorPtr> values);
  // Errors: CudnnRefusal if the attribute was not set.
  template <class T>
  std::vector<T> values(cudnnBackendAttributeName_t name) const {
    const BackendAttribute& from = attribute(name);
    std::vector<T> found(static_cast<size_t>(from.count));
    std::memcpy(found.data(), from.bytes.data(), from.bytes.size());
    return found;
  }
  template <class T>
  T value(cudnnBackendAttributeName_t name) const {
    const BackendAttribute& from = attribute(name);
    require(from.bytes.size() >= sizeof(T), CUDNN_STATUS_BAD_PARAM, "an attribute without a value");
    T found;
    std::memcpy(&found, from.bytes.data(), sizeof(T));
    return found;
  }
  const std::vector<DescriptorPtr>& descriptors(cudnnBackendAttributeName_t name) const {
    return attribute(name).descriptors;
  }
  // The attribute's descriptor. Errors: CudnnRefusal unless it is finalized and of type `wanted`.
  const BackendDescriptor& finalized(cudnnBackendAttributeName_t name,
                                     cudnnBackendDescriptorType_t wanted) const;

  cudnnBackendDescriptorType_t type;
  bool is_finalized = false;
  std::map<int, BackendAttribute> attributes = {};
  std::shared_ptr<const Convolution> work = {};  // for a graph and what is made from it
  CudnnEngine engine = {};                       // for a configuration and its plan

 private:
  const BackendAttribute& attribute(cudnnBackendAttributeName_t name) const;
};

// The descriptors that the program owns. Errors: CudnnRefusal for an unknown handle.
cudnnBackendDescriptor_t add_descriptor(cudnnBackendDescriptorType_t type);
const DescriptorPtr& descriptor_of(cudnnBackendDescriptor_t handle);
void remove_descriptor(cudnnBackendDescriptor_t handle);

// cudnnBackendFinalize. Errors: CudnnRefusal.
void finalize(BackendDescriptor& descriptor);

}  // namespace lockstep::emulation
