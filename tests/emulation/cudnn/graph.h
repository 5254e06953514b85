// From the operations of a graph to what it computes.
#pragma once

#include <memory>

#include "tests/emulation/cudnn/convolution.h"
#include "tests/emulation/cudnn/descriptor.h"

namespace lockstep::emulation {

// Requires: a finalized one.
CudnnTensor tensor_of(const BackendDescriptor& descriptor);

// Checks an operation's tensors against each other. Errors: CudnnRefusal.
void check_convolution(const BackendDescriptor& operation);

// Null where no engine takes such a graph. Errors: CudnnRefusal for one that is none: without
// operations, or with a tensor that two of them make.
std::shared_ptr<const Convolution> decode(const std::vector<DescriptorPtr>& operations);

}  // namespace lockstep::emulation
