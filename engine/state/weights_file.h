// A file of weights to start from. Its tensors are read only once it is known to fit the network.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "engine/state/state_tensors.h"

namespace lockstep {

class WeightsFile {
 public:
  // Reads the header of a safetensors file, or all of a file of torch.save. Errors: those of
  // read_weights().
  explicit WeightsFile(std::filesystem::path file);

  const std::map<std::string, std::string>& metadata() const { return content_.metadata; }

  // As load_pretrained(); call it once. Errors: also CheckpointError where the file has changed
  // since.
  LoadedWeights load_into(nn::Module& model, Classifier classifier);

 private:
  const std::filesystem::path file_;
  const bool of_torch_;
  Safetensors content_;  // of a safetensors file only the metadata
};

}  // namespace lockstep
