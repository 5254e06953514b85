// Decodes the operations of a graph into the convolution that it computes.
#pragma once

#include <memory>

#include "tests/emulation/cudnn/convolution.h"
#include "tests/emulation/cudnn/descriptor.h"

namespace lockstep::emulation {

// Requires: `descriptor` is finalized.
CudnnTensor tensor_of(const BackendDescriptor& descriptor);

// Checks an operation's tensors against each other. Errors: CudnnRefusal.
void check_convolution(const BackendDescriptor& operation);

// Null if no engine supports the graph. Errors: CudnnRefusal for an invalid graph: one without
// operations, or one in which two operations produce the same tensor.
std::shared_ptr<const Convolution> decode(const std::vector<DescriptorPtr>& operations);

}  // namespace lockstep::emulation
