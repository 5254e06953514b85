// Resolves --device on this machine.
#pragma once

#include "core/device.h"
#include "trainers/options/command_line.h"

namespace lockstep::trainers {

// "auto" is CUDA where a GPU is visible, else the CPU.
Device device_of(const Options& options);

}  // namespace lockstep::trainers
