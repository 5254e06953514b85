// A training step on CUDA, compared with the CPU's layer by layer.
#pragma once

#include <string>

#include "bench/train/options.h"
#include "comm/launch.h"
#include "core/communicator.h"

namespace lockstep::bench {

// Takes one step of the same network on the same images on both devices. Each result and each
// gradient on CUDA is compared and then replaced by the CPU's, so that every op is compared alone,
// on the inputs that the CPU's had; then the updated weights are compared. A tensor's difference is
// relative, by root mean squares. Returns one object on one line: the largest differences and their
// places. One rank. Errors: UsageError for several ranks and off CUDA; InternalError where a
// difference is beyond what roundings explain, or the ops differ.
std::string compare_step(const SyntheticOptions& options,
                         const comm::Launch& launch,
                         Communicator& ranks);

}  // namespace lockstep::bench
