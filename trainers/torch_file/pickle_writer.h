// Writes pickles as torch.save does: tensors by name.
#pragma once

#include <string>

#include "core/safetensors.h"
#include "trainers/torch_file/torch_file.h"

namespace lockstep::trainers {

// The pickle of a dict of these tensors, the i-th of which has the storage "i"; with a scaler's
// state that of {"model": dict, "scaler": state}.
std::string pickle_of(const std::map<std::string, Tensor>& tensors,
                      const std::optional<ScalerState>& scaler);

}  // namespace lockstep::trainers
