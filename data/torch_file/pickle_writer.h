// Writes a pickle as torch.save does, with tensors by name.
#pragma once

#include <string>

#include "core/safetensors.h"
#include "data/torch_file/torch_file.h"

namespace lockstep::data {

// Returns the pickle of a dict of these tensors, the i-th of which has the storage "i". With a
// scaler's state, returns that of {"model": dict, "scaler": state}.
std::string pickle_of(const std::map<std::string, Tensor>& tensors,
                      const std::optional<ScalerState>& scaler);

}  // namespace lockstep::data
