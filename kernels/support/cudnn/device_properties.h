// Names of descriptors and attributes for device properties, which the headers of cuDNN 9.0 lack.
// The numbers are part of cuDNN 9's binary interface, so a program built with old headers can make
// plans without a GPU if it finds a newer library.
#pragma once

#include <cstddef>

#include <cudnn_graph.h>

namespace lockstep::kernels::cudnn {

inline constexpr size_t kHasDeviceProperties = 91100;  // the first cuDNN that supports them

inline constexpr auto kDeviceProperties = static_cast<cudnnBackendDescriptorType_t>(38);
inline constexpr auto kDevicePropertiesHandle = static_cast<cudnnBackendAttributeName_t>(2701);
inline constexpr auto kDevicePropertiesJson = static_cast<cudnnBackendAttributeName_t>(2702);
inline constexpr auto kHeuristicsDeviceProperties = static_cast<cudnnBackendAttributeName_t>(204);

#if CUDNN_GRAPH_MINOR >= 11
static_assert(kDeviceProperties == CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
static_assert(kDevicePropertiesHandle == CUDNN_ATTR_DEVICEPROP_HANDLE);
static_assert(kDevicePropertiesJson == CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
static_assert(kHeuristicsDeviceProperties == CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
#endif

}  // namespace lockstep::kernels::cudnn
