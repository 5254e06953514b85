#include "kernels/support/cudnn/descriptor.h"

#include <array>

#include <fmt/core.h>

namespace lockstep::kernels::cudnn {
namespace {

std::string last_error() {
  std::array<char, 1024> text{};
  api().get_last_error_string(text.data(), text.size() - 1);
  return text.data();
}

}  // namespace

CudnnError::CudnnError(std::string_view call, cudnnStatus_t status)
    : EnvironmentError(fmt::format("cuDNN refused {}", call),
                       fmt::format("status {}: {}", static_cast<int>(status), last_error()),
                       "CUDNN_LOGDEST_DBG=stderr CUDNN_LOGLEVEL_DBG=2 shows more") {}

void check(cudnnStatus_t status, std::string_view call) {
  if (status != CUDNN_STATUS_SUCCESS) throw CudnnError(call, status);
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t made = nullptr;
  check(api().create_descriptor(type, &made), "a descriptor");
  owned_ = {made, [](cudnnBackendDescriptor_t ended) { api().destroy_descriptor(ended); }};
}

Descriptor& Descriptor::set_raw(cudnnBackendAttributeName_t name,
                                cudnnBackendAttributeType_t type,
                                int64_t count,
                                const void* values) {
  check(api().set_attribute(get(), name, type, count, values),
        fmt::format("attribute {}", static_cast<int>(name)));
  return *this;
}

Descriptor& Descriptor::finalize() {
  check(api().finalize(get()), "to finalize a descriptor");
  return *this;
}

bool Descriptor::try_finalize() {
  return api().finalize(get()) == CUDNN_STATUS_SUCCESS;
}

int64_t Descriptor::count(cudnnBackendAttributeName_t name,
                          cudnnBackendAttributeType_t type) const {
  int64_t values = 0;
  check(api().get_attribute(get(), name, type, 0, &values, nullptr), "to count an attribute");
  return values;
}

int64_t Descriptor::get_raw(cudnnBackendAttributeName_t name,
                            cudnnBackendAttributeType_t type,
                            int64_t capacity,
                            void* values) const {
  int64_t got = 0;
  check(api().get_attribute(get(), name, type, capacity, &got, values),
        fmt::format("to tell attribute {}", static_cast<int>(name)));
  return got;
}

std::vector<Descriptor> Descriptor::descriptors(cudnnBackendAttributeName_t name,
                                                cudnnBackendDescriptorType_t type,
                                                int64_t most) const {
  std::vector<Descriptor> found;
  std::vector<cudnnBackendDescriptor_t> raw;
  raw.reserve(static_cast<size_t>(most));
  for (int64_t i = 0; i < most; ++i) raw.push_back(found.emplace_back(type).get());
  const int64_t got =
      get_raw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, static_cast<void*>(raw.data()));
  found.erase(found.begin() + got, found.end());
  return found;
}

std::string Descriptor::text(cudnnBackendAttributeName_t name) const {
  const std::vector<char> characters = values<char>(name);
  return {characters.begin(), characters.end()};
}

}  // namespace lockstep::kernels::cudnn
