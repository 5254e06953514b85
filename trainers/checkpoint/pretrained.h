// Weights of another training, from --pretrained.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/safetensors.h"
#include "nn/module.h"
#include "trainers/checkpoint/state_tensors.h"

namespace lockstep::trainers {

enum class Classifier {
  kMustFit,
  kMayStartFresh,  // a last layer of another class count keeps its initial weights
};

// Errors: CheckpointError for a file that cannot be read.
Safetensors read_weights(const std::filesystem::path& file);

// Overwrites the model's state with the file's tensors of PyTorch's names, with or without
// "module." before all of them; num_batches_tracked may be absent. Returns the name of the
// classifier where it starts fresh, as with timm's --num-classes.
// Errors: CheckpointError naming the first tensors that are missing, of another shape or type, or
// not the model's.
std::optional<std::string> load_pretrained(const std::filesystem::path& file,
                                           FileTensors tensors,
                                           nn::Module& model,
                                           Classifier classifier);

// "module.conv1.weight" -> "conv1.weight", where all names begin so.
FileTensors without_module_prefix(FileTensors tensors);

}  // namespace lockstep::trainers
