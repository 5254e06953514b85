// A file of weights to start from. Its tensors are read only once it is known to fit the network.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "engine/state/state_tensors.h"

namespace lockstep {

// "1.0", which files of weights have in their metadata under kVersionKey.
std::string format_version();
inline constexpr int kFormatMajor = 1;  // files of another one cannot be read
inline constexpr int kFormatMinor = 0;
inline constexpr const char* kVersionKey = "format_version";
// JSON in the metadata: how the weights are to be evaluated, with the "class_names" of the outputs.
inline constexpr const char* kEvaluationKey = "evaluation";

class WeightsFile {
 public:
  // Reads the header of a safetensors file, or all of a file of torch.save. Errors:
  // CheckpointError for a file that cannot be read.
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
